"""The API of out-of-tree plugins (called for one pod and one node, as in kube-scheduler) and its adapter.

`methods` has the methods of a plugin, `handle` its access to the scheduler, `node_info` its view of a node. `adapter`
makes a plugin of the framework from it, `answers` validates its results, `worker_threads` runs blocking calls, `watch`
measures them.
"""

"""The API of out-of-tree plugins (one pod, one node, as in kube-scheduler), and its adapter.

`methods` has the methods of such a plugin and what each is given and may answer, `handle` what it reaches the scheduler
with, `node_info` the nodes as it sees them. `adapter` makes of it what a profile takes, `answers` checks what it says,
`worker_threads` is where it may wait, `watch` notes which one runs and for how long.
"""

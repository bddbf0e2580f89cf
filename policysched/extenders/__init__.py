"""HTTP extenders, as in kube-scheduler: services that filter, score, preempt and bind.

`settings` has the configuration of an extender, `http_extender` calls it, `wire` has the messages.

Only `app` and the packages above it import this package.
"""

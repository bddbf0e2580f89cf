"""What several plugins share, as kube-scheduler's plugins/helper.

Comes in: columns of the state, changes. Goes out: base classes, masks, answers per distinct value, changes taken apart.
It knows no plugin.
"""

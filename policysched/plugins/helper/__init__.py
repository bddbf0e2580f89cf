"""What several plugins share, as kube-scheduler's plugins/helper; it knows no plugin.

Comes in: columns of the state, changes. Goes out: `bases`, what a plugin is made of and how its hints take a change
apart; `columns`, masks, reason codes and answers per distinct value.
"""

"""Scheduling attempts of pod groups: one cycle for all members, which are placed together or not at all.

| module | contents |
|---|---|
| `attempts` | attempts of pod groups |
| `validation` | reasons why a group is not tried |
| `placements` | the cycle: tries placements and chooses the best |
| `placement_points` | calls of plugins that generate and score placements |
| `cycle` | decides about the members on one placement, one after another |
| `outcomes` | the decision about a group, and how its members end |
| `dry_run` | the decision about a group that is not placed |
| `record` | the decision record of a group |
| `conditions` | writes of the condition PodGroupInitiallyScheduled |

Source: pkg/scheduler/schedule_one_podgroup.go, pkg/scheduler/algorithm_podgroup.go, v1.37 and v1.38.
"""

"""The rules of SchedulingPolicy objects as framework plugins, evaluated together.

Packages in order, each imports earlier ones only: `compile`, `inputs`, `shared_values`, `results`, `plugin`,
`policy_set`, `policy_status`. Results are cached for rules × nodes; a change recomputes the affected rows. `schedule`
and upper packages import this one.
"""

"""SchedulingPolicy objects compiled into framework plugins, evaluated together. It knows nothing of the network.

Seven floors, each importing only earlier ones: `compile`, `inputs`, `shared_values`, `results`, `plugin`, `policy_set`,
`policy_status`. They maintain a view: rules read inputs, some of them through values that many nodes share; results
are kept for rules × nodes; a change names affected rows, and those alone are worked out again. Nothing else is
remembered.
"""

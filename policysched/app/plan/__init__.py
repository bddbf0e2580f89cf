"""Say what a change of policies, configuration or nodes would do to the pods of a cluster, before it is made.

Comes in: a cluster, what is in force on it, and what would be. Goes out: a `Plan`: pods that would land elsewhere or
nowhere, by workload. Both sides are decided by the engine of the scheduler. `reading` and `change` make the sides,
`deciding` decides about the pods on both and `landing` compares where one lands, `causes` says what decides it,
`demand` which nodes would be asked for too much; `results` are the values, `tables` what people see, and `plan` puts
all together.
"""

"""The plan command: predict the effect of a change of policies, configuration or nodes on all pods.

`reading` and `change` build the cluster before and after, `deciding` decides all pods on both, `landing` compares.
`causes` finds the deciding rule, `demand` the overloaded nodes. `plan` combines the steps; `results` and `tables` are
the output.
"""

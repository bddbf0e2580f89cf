"""Cached results per rule of a policy and node; only affected nodes are evaluated again.

Comes in: compiled rules, their inputs and dependencies. Goes out: codes of filters and scores by policy and row.
`rule_rows` is what one rule says of rows; `pod_independent` keeps what is the same for all pod classes, `matrix` the
policies of a profile for one pod class. `normalized` scores for a policy that looks at the feasible nodes together,
`remembered` answers for rows and pod classes that agree in what a rule reads.
"""

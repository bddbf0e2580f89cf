"""InterPodAffinity: keep pods near to or away from other pods, and prefer nodes for the pods around them.

Comes in: a pod's terms, the terms of placed pods, pod counters and topology domains. Goes out: reason codes and scores
a row, and the rows that a change affects. `plugin` has the extension points, `states` what they prepare for a pod
class, `terms` what terms mean and weigh, `namespaces` which namespaces they select, `sums` adds up by domain, `hints`
says which changes help a waiting pod.
"""

"""Label and node selectors, taints and affinity terms of the API, compiled once and asked often.

Comes in: the structs of `model.objects`. Goes out: matchers of labels, of nodes and of pods. `name_validation` knows
what the API server allows as names, keys and values, `pod_part_cache` keeps what was compiled of parts of pods.
"""

"""Compiled label selectors, node selectors, taints and affinity terms.

Input: structs of `model.objects`. Output: matchers of labels, nodes and pods. `name_validation` has the API server's
rules for names, `pod_part_cache` caches compiled parts of pods.
"""

"""The why command: explain why a pod is on its node or pending, and which changes would help.

`inputs` finds the pod, `variants` evaluates edited pods, nodes and policies. `obstacles` splits rejections by cause,
with `pod_parts` and `rule_parts`; `repairs` tries `changes`; `comparison` compares two nodes. `why` combines the
steps; `results` and `tables` are the output.
"""

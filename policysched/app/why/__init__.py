"""The why command: explain why a pod is on its node or pending, and which changes would help.

`inputs` finds the pod, `variants` evaluates edited pods, nodes and policies. `obstacles` splits rejections by cause,
with `pod_parts` and `rule_parts`; `repairs` tries `changes`; `comparison` compares two nodes. `decision` combines the
steps for one pod, with `summaries`; `why` adds pod groups and notes; `results` and `tables` are the output.
"""

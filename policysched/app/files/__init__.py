"""Objects from YAML and JSON files, each with its source position.

Comes in: paths or texts. Goes out: objects with the positions of their fields, or refusals with file, line and
column. `objects` is the exact reader; `saved_clusters` reads large ones, by quicker readers of JSON and YAML that
leave to it what they cannot tell. `workload_pods` makes the pod that a workload's controller would make, `new_pods`
makes new pods of scheduled ones.
"""

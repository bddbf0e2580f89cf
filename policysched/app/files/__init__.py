"""Read objects from YAML and JSON files, with the position of every field.

`objects` is the complete reader. `saved_clusters` reads large files faster and falls back to `objects`.
`workload_pods` makes the pod of a workload, `new_pods` makes pending copies of placed pods. Errors have file, line and
column.
"""

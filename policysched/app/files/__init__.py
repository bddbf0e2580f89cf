"""Read the objects of a cluster from files, and make the pods of workloads.

`saved_clusters` reads large files with fewer checks and falls back to `reading.documents`. `given` reads what a Python
program passes. `workload_pods` makes the pod of a workload, `new_pods` makes pending copies of placed pods. `output`
writes files.
"""

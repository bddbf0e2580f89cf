"""The endpoint POST /dry-run.

`endpoint` handles the request and `pod_requests` reads its pods in the port's thread. The scheduler's event loop
decides between two cycles, through `interface`. `record_answers` writes the decision records.
"""

"""The HTTPS port of a running scheduler: health, metrics, configuration, policies, dry-runs.

It runs in a thread and a loop of its own, so that a long cycle does not look like a dead process, and whoever talks
slowly to the port holds up nobody but himself. What it shows it asks of the scheduler's loop, or reads where reading
from another thread is safe. `thread` begins and ends it, `server` listens, `endpoints` says what is served to whom,
`access` asks the API server who may read what.
"""

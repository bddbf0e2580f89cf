"""A day and a half of a cluster with everything on, in simulated time, in one process; see `__main__`."""

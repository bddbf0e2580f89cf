"""SchedulingPolicy objects compiled into framework plugins. It knows nothing of the network."""

"""Values of nodes from outside: from a Prometheus server or from a file. It knows nothing of decisions."""

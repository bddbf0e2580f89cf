"""Translation of policies into the node affinity of a pod, for `policysched translate`."""

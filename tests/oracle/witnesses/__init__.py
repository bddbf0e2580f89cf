"""Witnesses of the differences between releases: cases that two kube-schedulers answer differently, by field."""

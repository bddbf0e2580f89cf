"""Nominated pods, and the columns of nominated pods that decisions about other pods read."""

"""Nominated pods, and columns of them that decisions about other pods read."""

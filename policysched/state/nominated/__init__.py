"""Nominated pods, and what decisions about other pods read of them."""

"""Nominated pods and their effect on decisions about other pods."""

"""Nominated pods, and arrays with their values for decisions about other pods."""

"""Nominated pods: which node is kept for which, and what that means for the others."""

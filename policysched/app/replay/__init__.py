"""Decide what a scheduler recorded again, or with other policies.

Comes in: the files of a record. Goes out: which decisions differ, or what would have been different that day.
"""

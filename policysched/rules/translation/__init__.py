"""Translates filter conditions into node affinity, for programs that know affinity but no policies."""

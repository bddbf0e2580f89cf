"""Wiring: the running scheduler, dry-run, check and demo. Clocks and random sources are made here."""

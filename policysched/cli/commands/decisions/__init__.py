"""Commands about decisions: dry-run, why, plan, and records that are made and replayed."""

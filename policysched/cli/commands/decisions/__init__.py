"""Commands about decisions: dry-run, why, plan, record, replay."""

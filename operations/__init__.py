"""What an operator runs by hand, with rights of their own; docs/runbook.md says when."""

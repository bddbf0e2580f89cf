"""Recording a scheduler, and replaying what was recorded."""

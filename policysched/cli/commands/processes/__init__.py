"""Commands that run until they are stopped: the scheduler, the webhook, the sandbox and the demo."""

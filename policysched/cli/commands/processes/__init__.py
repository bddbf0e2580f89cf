"""Commands that run until they are stopped: run, webhook, sandbox, demo."""

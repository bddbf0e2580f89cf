"""Commands for whoever sets a scheduler up: configurations, plugins, the completion of a shell."""

"""Commands that set up a scheduler: config, plugins, plugin, completion."""

"""Commands that set up a scheduler (crd, config, plugins, plugin, completion), and version and help."""

"""Events about pods, written in the background so that bindings do not wait.

`bodies` builds events and finds repeats, `writer` has a queue with limits, workers and retries.
"""

"""Say why a pod is where it is, or why it is nowhere, and what would change that.

Comes in: a cluster from files or a server, and the name of a pod in it. Goes out: an `Explanation`: what stands against
which nodes, repairs that were tried, scores side by side. All of it is what the engine of the scheduler says.
"""

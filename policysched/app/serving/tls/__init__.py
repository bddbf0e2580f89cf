"""The certificates that the port shows, and the authorities whose clients it knows.

Comes in: files, self-made keys, and what the API server publishes. Goes out: one `SSLContext`, which takes up what is
rotated without a restart.
"""

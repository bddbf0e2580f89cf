"""The only part that talks to a Kubernetes API server: credentials, requests, watches, writes. It decides nothing."""

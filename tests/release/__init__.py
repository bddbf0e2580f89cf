"""What a release consists of and how its workflow publishes it, without a network service."""

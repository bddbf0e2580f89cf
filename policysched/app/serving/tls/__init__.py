"""Certificates of the HTTPS port and authorities of its clients, with rotation without a restart."""

"""Certificates of the HTTPS port, and CAs that client certificates are checked against.

Changed files take effect without a restart.
"""

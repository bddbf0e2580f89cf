"""The store of objects and all writes to it: versions, admission, and the history that watches read.

In come objects as requests and controllers have them. They pass admission, get their metadata and a resource version,
and are stored, or refused with a Status. Out come stored objects, and an event for each change to whoever listens.
"""

"""Tests of the tests of policies."""

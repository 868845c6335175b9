"""The one error of the local cloud."""

from __future__ import annotations


class LocalCloudError(Exception):
    """A step failed. The message is one line for people: what failed, why if known, and where its log is."""

"""Threadkeep's core: domain, use cases, gateway and stores. The handlers beside it are its entry points."""

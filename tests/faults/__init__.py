"""Planted faults: small breakages of the code, each of which a test named beside it must notice (`make faults`)."""

"""The code of a custom resource, shipped as it lies."""

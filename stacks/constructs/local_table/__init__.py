"""The code of the local target's one custom resource; outside `lambdas/`, so that no deployment ships it."""

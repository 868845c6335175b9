"""The local cloud: a real Valkey and an AWS emulator that a real `cdk deploy` deploys into, on this machine alone."""

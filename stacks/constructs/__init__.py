"""Parts that stacks are made of."""

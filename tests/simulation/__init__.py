"""The whole service in one process under a seeded scheduler with virtual time: one seed, one history, one verdict."""

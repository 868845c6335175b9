"""Real deaths under the real service: a Valkey and producers that are killed, and what has to stand beside them.

`server` is the Valkey, `tier` the hot tier as functions use it meanwhile, `uploads` a store that outlives it,
`producing` a producer's program and `runs` how a test starts, follows and kills it.
"""

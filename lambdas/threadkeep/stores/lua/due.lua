#!lua flags=no-writes
-- Entries of a shard of the deadline index to be looked at now, each with its moment, the oldest first.
return server.call('ZRANGE', KEYS[1], '-inf', digits(now_ms()), 'BYSCORE', 'LIMIT', 0, ARGV[1], 'WITHSCORES')

#!lua flags=allow-oom
-- These view no longer, whether they lag or not.
server.call('ZREM', KEYS[1], unpack(ARGV))
server.call('ZREM', KEYS[2], unpack(ARGV))
return {'unsubscribed'}

#!lua
-- with viewing
-- conversation.subscribe (docs/protocol.md, section 4): a lease, not trusted to be given back.
local viewers, lagging, gravestone = KEYS[1], KEYS[2], KEYS[3]
local connection, lease_ms, viewers_max = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

if is_buried(gravestone) then
  return {'erased'}
end
local now = now_ms()
server.call('ZREMRANGEBYSCORE', viewers, '-inf', digits(now))
server.call('ZREMRANGEBYSCORE', lagging, '-inf', digits(now))
server.call('ZREM', lagging, connection)
local count = server.call('ZCARD', viewers) + server.call('ZCARD', lagging)
if not server.call('ZSCORE', viewers, connection) and count >= viewers_max then
  return {'full'}
end
server.call('ZADD', viewers, digits(now + lease_ms), connection)
keep_longest(viewers)
keep_longest(lagging)
return {'subscribed'}

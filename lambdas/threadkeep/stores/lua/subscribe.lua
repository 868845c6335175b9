#!lua
-- conversation.subscribe (docs/protocol.md, section 4): a lease, not trusted to be given back.
local viewers = KEYS[1]
local connection, lease_ms, viewers_max = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local now = now_ms()
server.call('ZREMRANGEBYSCORE', viewers, '-inf', digits(now))
if not server.call('ZSCORE', viewers, connection) and server.call('ZCARD', viewers) >= viewers_max then
  return {'full'}
end
server.call('ZADD', viewers, digits(now + lease_ms), connection)
-- the key goes with its longest lease
local longest = server.call('ZRANGE', viewers, -1, -1, 'WITHSCORES')[2]
server.call('PEXPIREAT', viewers, digits(tonumber(longest)))
return {'subscribed'}

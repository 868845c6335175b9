#!lua
-- A live stream of a user's, for a while; 0 where there are as many as there may be.
local streams = KEYS[1]
local stream, lease_ms, streams_max = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local now = now_ms()
server.call('ZREMRANGEBYSCORE', streams, '-inf', digits(now))
if not server.call('ZSCORE', streams, stream) and server.call('ZCARD', streams) >= streams_max then
  return 0
end
server.call('ZADD', streams, digits(now + lease_ms), stream)
server.call('PEXPIRE', streams, lease_ms)
return 1

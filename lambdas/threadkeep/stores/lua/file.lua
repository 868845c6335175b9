#!lua
-- Enter a stream in the deadline index. An entry that is due is entered anew: whoever is about to remove it, having
-- found no such stream, then finds another moment there.
local shard, member, lease_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])
local now = now_ms()
local at = tonumber(server.call('ZSCORE', shard, member) or '0')
if at <= now then
  server.call('ZADD', shard, digits(now + lease_ms), member)
end
return {'filed'}

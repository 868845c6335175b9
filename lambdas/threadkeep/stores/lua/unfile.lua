#!lua flags=allow-oom
-- Remove an entry of the deadline index, unless it was filed anew since it was read.
local shard, member, at = KEYS[1], ARGV[1], tonumber(ARGV[2])
if tonumber(server.call('ZSCORE', shard, member) or '0') == at then
  server.call('ZREM', shard, member)
end
return {'unfiled'}

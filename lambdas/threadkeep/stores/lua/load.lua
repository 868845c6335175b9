#!lua
-- with leaf, tail, first
-- What a reader has found in the table: owner, newest and first message (where they were asked), messages in order of
-- their ids.
local gravestone, register_key, tail, loading, first = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local reader, owner, is_confirmed, newest = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local void_ms, keep_ms = tonumber(ARGV[5]), ARGV[6]
local messages_max, bytes_max, tail_ms = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local first_kind, first_element = ARGV[10], ARGV[11]

if reader ~= '' and server.call('GET', loading) == reader then
  server.call('UNLINK', loading)
end
if is_buried(gravestone) then
  return {'erased'}
end
if is_confirmed then
  confirm(register_key, read_register(register_key), newest, void_ms, keep_ms)
end
server.call('HSET', register_key, 'owner', owner)
if first_kind ~= '' then
  told_first(first, register_key, tail, first_kind, first_element, tail_ms)
end
server.call('PEXPIRE', first, tail_ms)
server.call('PEXPIRE', register_key, keep_ms)
keep(tail, {unpack(ARGV, 12)}, messages_max, bytes_max, tail_ms)
return {'kept'}

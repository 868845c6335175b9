#!lua flags=allow-oom
-- with leaf, tail, first
-- Settling, its last step (docs/protocol.md, section 3.3): the message is stored, the log no longer needed. What the
-- tail takes for it is less than what the log gives back.
local state, log, live, viewers, register = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local gravestone, tail, first = KEYS[6], KEYS[7], KEYS[8]
local stream, state_ms, keep_ms, element = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local messages_max, bytes_max, tail_ms = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local first_kind = ARGV[8]

server.call('UNLINK', log)
server.call('HDEL', live, stream)
if is_buried(gravestone) then
  server.call('UNLINK', state)
  return read_viewers(viewers)
end
if server.call('HEXISTS', state, 'seal') == 1 then
  server.call('HSET', state, 'settled', '1')
  server.call('PEXPIRE', state, state_ms)
else
  -- a failover may have brought back a stream from before its seal: without its log it must take no append, and
  -- whoever still writes it hears `not_found`, opens it again and is told by the table that it is closed
  server.call('UNLINK', state)
end
-- no longer a leaf by being live
note_first(first, register, live, stream, first_kind, element, tail_ms)
fill(register, stream, keep_ms)
keep(tail, {element}, messages_max, bytes_max, tail_ms)
return read_viewers(viewers)

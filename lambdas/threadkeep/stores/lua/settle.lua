#!lua flags=allow-oom
-- with leaf
-- Settling, its last step (docs/protocol.md, section 3.3): the message is stored, the log no longer needed.
local state, log, live, viewers, register = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local stream, state_ms, keep_ms = ARGV[1], ARGV[2], ARGV[3]

server.call('UNLINK', log)
server.call('HDEL', live, stream)
if server.call('HEXISTS', state, 'seal') == 1 then
  server.call('HSET', state, 'settled', '1')
  server.call('PEXPIRE', state, state_ms)
else
  -- a failover may have brought back a stream from before its seal: without its log it must take no append, and
  -- whoever still writes it hears `not_found`, opens it again and is told by the table that it is closed
  server.call('UNLINK', state)
end
-- no longer a leaf by being live
fill(register, stream, keep_ms)
return read_viewers(viewers)

#!lua flags=allow-oom
-- A stop (docs/protocol.md, section 3.3): sealed whoever holds the stream, unless it is sealed.
local state, log, live = KEYS[1], KEYS[2], KEYS[3]
local stream, seal, seal_old_ms, waits_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local known, set = unpack(server.call('HMGET', state, 'epoch', 'seal'))
if not set then
  set_seal(state, live, stream, seal, seal_old_ms)
end
if known then
  return sealed(state, log)
end
-- not opened yet, or lost: whoever opens it meanwhile hears `closed`
server.call('PEXPIRE', state, waits_ms)
return {'sealed_unopened'}

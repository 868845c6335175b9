#!lua flags=allow-oom
-- A stop (docs/protocol.md, section 3.3): sealed whoever holds the stream, unless it is sealed.
local state, log = KEYS[1], KEYS[2]
local seal, seal_old_ms, waits_ms = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local known, set = unpack(server.call('HMGET', state, 'epoch', 'seal'))
if not set then
  set_seal(state, seal, seal_old_ms)
end
if known then
  return sealed(state, log)
end
-- not opened yet, or lost: whoever opens it meanwhile hears `closed`
server.call('PEXPIRE', state, waits_ms)
return {'sealed_unopened'}

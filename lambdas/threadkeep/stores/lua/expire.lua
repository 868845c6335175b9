#!lua flags=allow-oom
-- Whether a stream's time has run out, judged and sealed in one step (docs/protocol.md, section 3.3).
local state, log = KEYS[1], KEYS[2]
local dead_seal, silent_seal, long_seal, seal_old_ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local known, seal, settled, lease, silent =
  unpack(server.call('HMGET', state, 'epoch', 'seal', 'settled', 'lease', 'silent'))
if not known or settled then
  return {'unknown'}
end
local now, due = now_ms(), due_ms(state)
if due > now then
  return {'alive', due}
end
if not seal then
  -- dead first: the silent and the long ones still beat
  local ending = tonumber(lease) <= now and dead_seal or tonumber(silent) <= now and silent_seal or long_seal
  set_seal(state, ending, seal_old_ms)
end
return sealed(state, log)

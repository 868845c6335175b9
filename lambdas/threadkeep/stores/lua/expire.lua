#!lua flags=allow-oom
-- Whether a stream's time has run out, judged and sealed in one step (docs/protocol.md, section 3.3).
local state, log, live = KEYS[1], KEYS[2], KEYS[3]
local stream, dead_seal, silent_seal, long_seal = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local seal_old_ms = tonumber(ARGV[5])

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
  set_seal(state, live, stream, ending, seal_old_ms)
end
return sealed(state, log)

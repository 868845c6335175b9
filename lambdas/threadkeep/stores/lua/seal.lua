#!lua flags=allow-oom
-- stream.close, its first half (docs/protocol.md, sections 3.1 and 3.3): one step that fixes the end.
local state, log, live = KEYS[1], KEYS[2], KEYS[3]
local principal, epoch, offset, seal = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local stream, seal_old_ms = ARGV[5], tonumber(ARGV[6])

local known, owner, set, set_at = unpack(server.call('HMGET', state, 'epoch', 'principal', 'seal', 'sealed_at'))
-- "repeated after its own seal: ok", with the seal as it was set
local is_repeated = set and tonumber(set_at) == offset
local refusal = refuse_writer(tonumber(known), owner, set and not is_repeated and set, principal, epoch)
if refusal then
  return refusal
end

if not is_repeated then
  local stop = server.call('LLEN', log)
  if offset > stop then
    return {'gap', stop}
  end
  if offset < stop then
    return {'diverged'}
  end
  set_seal(state, live, stream, seal, seal_old_ms)
  server.call('HSET', state, 'sealed_at', digits(offset))
end
return sealed(state, log)

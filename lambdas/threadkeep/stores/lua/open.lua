#!lua
-- with leaf
-- stream.open (docs/protocol.md, section 3.1). Absent values are empty.
local state, log, live, viewers, register_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local gravestone = KEYS[6]
local stream, principal, producer = ARGV[1], ARGV[2], ARGV[3]
local facts, told = ARGV[4], ARGV[5]
local parent, newest = ARGV[6], ARGV[7]
local held, takeover, fork = tonumber(ARGV[8]), ARGV[9] == '1', ARGV[10] == '1'
local parent_settled = ARGV[11] == '1'
local lease_ms, silent_ms, stream_ms_max = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])
local live_max, void_ms, keep_ms, ends_ms = tonumber(ARGV[15]), tonumber(ARGV[16]), ARGV[17], ARGV[18]

local now = now_ms()
local known, owner, run, seal = unpack(server.call('HMGET', state, 'epoch', 'principal', 'producer', 'seal'))
known = tonumber(known)

-- "epoch never repeats or falls": known + 1, held + 1, or the clock, which goes on when all else is lost
local function next_epoch()
  return math.max((known or 0) + 1, (held or 0) + 1, now)
end

-- The stream is this writer's, with the log as it stands. Under a new epoch it may be silent anew.
local function keep(epoch)
  server.call('HSET', state, 'epoch', digits(epoch), 'principal', principal, 'producer', producer,
    'lease', digits(now + lease_ms))
  if epoch ~= known then
    server.call('HSET', state, 'silent', digits(now + silent_ms))
  end
  return {'opened', epoch, server.call('LLEN', log), 0, {}}
end

-- The stream begins anew, and viewers are told. No key of it has a TTL until it settles: those are never evicted.
local function begin()
  local epoch = next_epoch()
  server.call('UNLINK', log)
  server.call('HSET', state, 'facts', facts, 'bytes', '0')
  if ends_ms ~= '' then
    server.call('HSET', state, 'ends', ends_ms)
  end
  server.call('HSETNX', state, 'long', digits(now + stream_ms_max))
  server.call('HSET', live, stream, told)
  keep(epoch)
  return {'opened', epoch, 0, 1, read_viewers(viewers)}
end

-- Section 2, "Turns": why a new stream may not stand under that parent, or nil where it may.
local function refuse_place()
  local register, others = read_register(register_key), server.call('HKEYS', live)
  confirm(register_key, register, newest, void_ms, keep_ms)
  -- whoever held an epoch goes on with an answer whose place was judged when it began
  local refusal = refuse_parent(register, others, parent, fork or held)
  if refusal then
    return refusal
  end
  if not parent_settled then
    return {'parent_missing'}
  end
  return #others >= live_max and {'full'} or nil
end

if is_buried(gravestone) then
  return {'erased'}
end
-- sealed, also before any opening
if seal then
  return {'closed', seal}
end
if not known then
  return refuse_place() or begin()
end
-- whoever is let in below goes on where the stream began: only that place was judged
local is_same_run = owner == principal and run == producer
local is_let_in = is_same_run or (held and known <= held) or (not held and takeover)
if is_let_in and told ~= (server.call('HGET', live, stream) or told) then
  return {'place_differs'}
end
-- the same run: a repeated open finds its place, one that names its epoch holds everything and starts over
if is_same_run then
  if held then
    return begin()
  end
  return keep(known)
end
-- another run that held the stream: fenced if the stream has gone on without it
if held then
  if known > held then
    return {'fenced'}
  end
  return begin()
end
if takeover then
  return keep(next_epoch())
end
return {'held'}

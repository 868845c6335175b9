#!lua
-- stream.append (docs/protocol.md, section 3.1).
local state, log, viewers = KEYS[1], KEYS[2], KEYS[3]
local principal, epoch, offset, ops = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local lease_ms = tonumber(ARGV[5])

local known, owner, seal = unpack(server.call('HMGET', state, 'epoch', 'principal', 'seal'))
local refusal = refuse_writer(tonumber(known), owner, seal, principal, epoch)
if refusal then
  return refusal
end

-- the log's length is the offset
local stop = server.call('LLEN', log)
if offset > stop then
  return {'gap', stop}
end
-- "equal to what stands there" is the only duplicate; from the tail, where repeated ones stand
if offset < stop and server.call('LINDEX', log, offset - stop) ~= ops then
  return {'diverged'}
end

-- a duplicate too is a sign of life, and is fanned out: the first run may have died before it did
server.call('HSET', state, 'lease', digits(now_ms() + lease_ms))
if offset < stop then
  return {'duplicate', offset + 1, read_viewers(viewers)}
end
server.call('RPUSH', log, ops)
return {'accepted', stop + 1, read_viewers(viewers)}

#!lua
-- stream.append (docs/protocol.md, section 3.1).
local state, log, viewers = KEYS[1], KEYS[2], KEYS[3]
local principal, epoch, offset, ops = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local lease_ms, silent_ms, bytes_max = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local told_ends = ARGV[8]
local BEAT = '[]'

local known, owner, seal, bytes, ends =
  unpack(server.call('HMGET', state, 'epoch', 'principal', 'seal', 'bytes', 'ends'))
local refusal = refuse_writer(tonumber(known), owner, seal, principal, epoch)
if refusal then
  return refusal
end

-- the conversation may have ended under it: the caller asks the table, and says how it stands with the repeated append
local now = now_ms()
if told_ends ~= '' then
  server.call('HSET', state, 'ends', told_ends)
  ends = told_ends
end
if ends and now >= tonumber(ends) then
  return {'past_end'}
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

bytes = tonumber(bytes) + #ops
if offset == stop and bytes > bytes_max then
  return {'too_large'}
end

-- a duplicate too is a sign of life, and is fanned out: the first run may have died before it did
server.call('HSET', state, 'lease', digits(now + lease_ms))
if offset < stop then
  return {'duplicate', offset + 1, read_viewers(viewers)}
end
server.call('HSET', state, 'bytes', digits(bytes))
if ops ~= BEAT then
  server.call('HSET', state, 'silent', digits(now + silent_ms))
end
server.call('RPUSH', log, ops)
return {'accepted', stop + 1, read_viewers(viewers)}

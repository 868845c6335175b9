#!lua flags=allow-oom
-- with viewing
-- stream.resume (docs/protocol.md, sections 4 and 6): a page of the log of a stream that is not settled.
local state, log, viewers, lagging = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local epoch, offset, page_bytes_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local connection = ARGV[4]
local AT_ONCE = 32  -- elements read in one step; up to 512 KiB, of which a page takes 20

local known, seal, settled = unpack(server.call('HMGET', state, 'epoch', 'seal', 'settled'))
known = tonumber(known)
if not known or settled then
  -- what it asks for it gets from the table, whole
  move(lagging, viewers, connection)
  return {'unknown'}
end

-- a place of another epoch, or one that was never reached, is none: the reader starts over
local stop = server.call('LLEN', log)
local at = (epoch == known and offset <= stop) and offset or 0

local page, bytes = {}, 0
local is_full = false
while at + #page < stop and not is_full do
  local first = at + #page
  for _, ops in ipairs(server.call('LRANGE', log, first, first + AT_ONCE - 1)) do
    bytes = bytes + #ops
    if #page > 0 and bytes > page_bytes_max then
      is_full = true
      break
    end
    page[#page + 1] = ops
  end
end
if not is_full then
  move(lagging, viewers, connection)
end
local is_due = due_ms(state) <= now_ms()
return {'resumed', known, at, at + #page, is_full and 1 or 0, seal and 1 or 0, is_due and 1 or 0, page}

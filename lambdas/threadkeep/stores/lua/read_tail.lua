#!lua flags=allow-oom
-- with leaf, tail
-- The newest messages of a path, as far as the tail holds them, and the conversation's first message, where that is
-- wanted for a path that does not reach its root. Absent values are empty. What is claimed or sealed may
-- be in the table without our having heard of it: where it would be the path's end, the end is unknown.
local gravestone, register_key, live, tail, loading = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local first_key = KEYS[6]
local asked, limit, reader, load_ms = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local messages_max, room_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local is_first_wanted = ARGV[7] == '1'
local AT_ONCE = 16  -- elements read in one step

if is_buried(gravestone) then
  return {'erased'}
end
local register, streams = read_register(register_key), {}
local fields = server.call('HGETALL', live)
for i = 1, #fields, 2 do
  streams[fields[i]] = cjson.decode(fields[i + 1])
end

-- the newest settled message on the way to the leaf
local leaf, is_known = asked, true
if asked == '' then
  leaf, is_known = register.leaf, is_settled(register)
  for stream in pairs(streams) do
    if is_known and stream > leaf then
      leaf = stream
    end
  end
end
while is_known and streams[leaf] do
  is_known = not streams[leaf].sealed
  leaf = streams[leaf].parent
  leaf = leaf ~= cjson.null and leaf or ''
end

-- up from there: a parent is older than its child, so that one pass over the list finds them all
local path, wanted = {}, nil
if is_known and leaf ~= '' then
  wanted = to_binary(leaf)
end
local at, is_at_end = -1, false
while wanted and #path < limit and not is_at_end do
  local elements = server.call('LRANGE', tail, at - AT_ONCE + 1, at)
  for i = #elements, 1, -1 do
    if wanted and #path < limit and id_of(elements[i]) == wanted then
      path[#path + 1] = elements[i]
      wanted = parent_of(elements[i])
      wanted = wanted ~= ROOT and wanted or nil
    end
  end
  is_at_end = #elements < AT_ONCE or (wanted and is_older(elements[1], wanted))
  at = at - AT_ONCE
end

-- somebody may fill it up, one at a time, where that can help
local is_enough = is_known and (not wanted or #path >= math.min(limit, messages_max)
  or server.call('LLEN', tail) >= messages_max or taken_bytes(tail) > room_bytes)
local is_loading = false
if not is_enough and (reader == '' or not server.call('SET', loading, reader, 'NX', 'PX', load_ms)) then
  local loader = server.call('GET', loading)
  is_loading = loader and loader ~= reader
end
local first = ''
if is_first_wanted and (wanted or not is_known) then
  first = server.call('GET', first_key) or register.first or ''
end
return {'tail', is_known and 1 or 0, is_loading and 1 or 0, register.owner or '', is_known and leaf or '', path, first}

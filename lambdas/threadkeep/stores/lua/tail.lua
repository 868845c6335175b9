-- The tail (threadkeep.stores.tail_elements): a list of the newest settled messages in order of their ids, the oldest
-- first. It always has a TTL. A message is in it once, and never changes.

local ROOT = string.rep('\0', 16)

local function id_of(element)
  return element:sub(1, 16)
end

local function parent_of(element)
  return element:sub(17, 32)
end

-- What it and all that were pushed before it take; only differences mean anything.
local function count_of(element)
  return (struct.unpack('>I4', element, 33))
end

local function with_count(element, count)
  return element:sub(1, 32) .. struct.pack('>I4', count) .. element:sub(37)
end

-- An id in its 16 bytes.
local function to_binary(id)
  local binary = id:gsub('%-', ''):gsub('%x%x', function(digits_of)
    return string.char(tonumber(digits_of, 16))
  end)
  return binary
end

-- By their bytes: `<` goes by the server's locale.
local function is_older(one, other)
  local a, b, c = struct.unpack('>I6I6I4', one)
  local x, y, z = struct.unpack('>I6I6I4', other)
  if a ~= x then
    return a < x
  end
  if b ~= y then
    return b < y
  end
  return c < z
end

-- Both in one order. What is there already stays.
local function merge(there, fresh)
  local merged, i = {}, 1
  for _, element in ipairs(fresh) do
    while there[i] and is_older(there[i], element) do
      merged[#merged + 1] = there[i]
      i = i + 1
    end
    if not there[i] or id_of(there[i]) ~= id_of(element) then
      merged[#merged + 1] = element
    end
  end
  while there[i] do
    merged[#merged + 1] = there[i]
    i = i + 1
  end
  return merged
end

local function taken_bytes(tail)
  local first, last = server.call('LINDEX', tail, 0), server.call('LINDEX', tail, -1)
  return first and (count_of(last) - count_of(first) + #first) % 2 ^ 32 or 0
end

-- Have these in the tail (in order, the oldest first), and the tail within its bounds. A new message is the newest as a
-- rule, and pushed; to put one in its place the list is written anew.
local function keep(tail, fresh, messages_max, bytes_max, tail_ms)
  if #fresh == 0 then
    return
  end
  local last = server.call('LINDEX', tail, -1)
  if last and not is_older(last, fresh[1]) then
    fresh = merge(server.call('LRANGE', tail, 0, -1), fresh)
    server.call('UNLINK', tail)
    last = nil
  end
  local count = last and count_of(last) or 0
  for _, element in ipairs(fresh) do
    count = (count + #element) % 2 ^ 32
    server.call('RPUSH', tail, with_count(element, count))
  end
  while server.call('LLEN', tail) > messages_max or taken_bytes(tail) > bytes_max do
    server.call('LPOP', tail)
  end
  server.call('PEXPIRE', tail, tail_ms)
end

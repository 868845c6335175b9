-- The conversation's first message (its oldest id), for contexts that do not reach back to it: a system message that is
-- a root is kept in a key of its own, which always has a TTL. Of any other only the id stands, in the register's field
-- `first`, so that nobody has to ask the table whether there is one. What is neither is not known. `kind` says what an
-- element is, and what to keep of it: 'whole', or nothing of a prompt that is too 'large'; of what is none its 'id', but
-- nothing of a 'child' that was just stored. Once several are roots, one of them a prompt, none of them is the first any
-- more: the field then says so, for as long as the register stands.
local SEVERAL = 'several'

-- Its 16 bytes of id, or `SEVERAL`; nil where it is not known.
local function known_first(first, register_key)
  local id = server.call('GETRANGE', first, 0, 15)
  return id ~= '' and id or server.call('HGET', register_key, 'first') or nil
end

local function set_first(first, register_key, kind, element, tail_ms)
  server.call('UNLINK', first)
  server.call('HDEL', register_key, 'first')
  if kind == 'whole' then
    server.call('SET', first, element)
    server.call('PEXPIRE', first, tail_ms)  -- at once, where it is 0
  elseif kind == 'id' then
    server.call('HSET', register_key, 'first', id_of(element))
  end
end

local function set_several(first, register_key)
  server.call('UNLINK', first)
  server.call('HSET', register_key, 'first', SEVERAL)
end

-- Whether it is a root beside the first message that is known, and one of the two is a prompt. A prompt that is older
-- than that may be its own root, come late from another region.
local function is_another_root(first, known, kind, id)
  if kind == 'child' or id == known then
    return false
  end
  return server.call('EXISTS', first) == 1 or (kind ~= 'id' and is_older(known, id))
end

-- Whether nothing older can be in the table: the register knows it to be empty, and nothing older is on its way.
local function is_certainly_first(register_key, live, message)
  if server.call('HGET', register_key, 'leaf') ~= '' then
    return false
  end
  for claimed in pairs(read_register(register_key).claims) do
    if claimed < message then
      return false
    end
  end
  for _, stream in ipairs(server.call('HKEYS', live)) do
    if stream < message then
      return false
    end
  end
  return true
end

-- The message is in the table; before the register is told. One dated back takes the place of what was the first.
local function note_first(first, register_key, live, message, kind, element, tail_ms)
  local known = known_first(first, register_key)
  if known == SEVERAL then
    return
  end
  if known and is_another_root(first, known, kind, id_of(element)) then
    set_several(first, register_key)
  elseif known and is_older(element, known) or not known and is_certainly_first(register_key, live, message) then
    -- whether what was known has that prompt for its root, the table tells
    set_first(first, register_key, known and kind == 'whole' and 'unknown' or kind, element, tail_ms)
  else
    server.call('PEXPIRE', first, tail_ms)
  end
end

-- A reader has found it in the table; an older one may have come meanwhile.
local function told_first(first, register_key, tail, kind, element, tail_ms)
  local known, oldest = known_first(first, register_key), server.call('LINDEX', tail, 0)
  if known == SEVERAL then
    return
  end
  if not (known and is_older(known, element)) and not (oldest and is_older(oldest, element)) then
    set_first(first, register_key, kind, element, tail_ms)
  end
end

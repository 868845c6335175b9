-- The leaf register, by the rules of threadkeep.domain.leaf. A hash: `leaf` is the newest message known to be in the
-- table (empty where there is none, absent while nobody has asked the table), and under its own id stands each
-- message that is claimed, with when it was; `owner` is the conversation's, where a reader has told it; `first` is for
-- `first.lua`. It always has a TTL: a claim that nobody fills must not stay for ever.

local function read_register(key)
  local register = {claims = {}}
  local fields = server.call('HGETALL', key)
  for i = 1, #fields, 2 do
    if fields[i] == 'leaf' then
      register.leaf = fields[i + 1]
    elseif fields[i] == 'owner' then
      register.owner = fields[i + 1]
    elseif fields[i] == 'first' then
      register.first = fields[i + 1]
    else
      register.claims[fields[i]] = tonumber(fields[i + 1])
    end
  end
  return register
end

-- Whether it can be judged by without asking the table.
local function is_sure(register, void_ms)
  local now = now_ms()
  for _, since in pairs(register.claims) do
    if since + void_ms <= now then
      return false
    end
  end
  return register.leaf ~= nil
end

-- Whether the leaf is the newest message in the table, for readers: one that is claimed and not filled may be there.
local function is_settled(register)
  for message in pairs(register.claims) do
    if register.leaf and message > register.leaf then
      return false
    end
  end
  return register.leaf ~= nil
end

-- Correct it by the newest message that the table was just seen to hold: an overdue claim that is not there is void.
local function confirm(key, register, newest, void_ms, keep_ms)
  local now = now_ms()
  if not register.leaf or newest > register.leaf then  -- ids are ordered in time
    register.leaf = newest
    server.call('HSET', key, 'leaf', newest)
  end
  for message, since in pairs(register.claims) do
    if message == newest or since + void_ms <= now then
      register.claims[message] = nil
      server.call('HDEL', key, message)
    end
  end
  server.call('PEXPIRE', key, keep_ms)
end

local function claim(key, register, message, keep_ms)
  if message ~= register.leaf then
    server.call('HSET', key, message, digits(now_ms()))
  end
  server.call('PEXPIRE', key, keep_ms)
end

-- The message is in the table, even where its claim was lost in between: the leaf advances to it. While the table
-- has not been asked, a newer one may be there: it counts as a claim until then.
local function fill(key, message, keep_ms)
  local leaf = server.call('HGET', key, 'leaf')
  if not leaf then
    server.call('HSET', key, message, digits(now_ms()))
  else
    server.call('HDEL', key, message)
    if message > leaf then
      server.call('HSET', key, 'leaf', message)
    end
  end
  server.call('PEXPIRE', key, keep_ms)
end

-- Why a new message may not stand under that parent, or nil where it may. Stale first: repeating does not cure it.
local function refuse_parent(register, live, parent, is_free)
  local present, is_open = register.leaf, false
  for message in pairs(register.claims) do
    if message > present then
      present = message
    end
  end
  for _, stream in ipairs(live) do
    is_open = is_open or (stream == parent and stream ~= register.leaf)  -- put, and not settled here yet
    if stream > present then  -- the leaf from its opening
      present = stream
    end
  end
  if parent ~= present and not is_free then
    return {'stale_leaf', present}
  end
  return is_open and {'parent_open'} or nil
end

-- Shared by all scripts: it is put between a script's first line, which holds its flags, and its body.
--
-- Every script begins with `#!lua`: Valkey then refuses it as a whole when memory is full, not at its second write,
-- and refuses keys of another slot even where one node holds them all. `allow-oom` stands where a script frees memory
-- or leads to that. Ops, facts and seals are the clients' bytes: stored and compared, never decoded.

-- Leases and epochs go by the hot tier's own clock, since its callers' clocks differ.
local function now_ms()
  local time = server.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- A whole number up to 2^53 in digits; tostring() would round it to 14 of them.
local function digits(number)
  return string.format('%.0f', number)
end

-- When somebody has to finish a stream unless it goes on (`Stream.due_ms` in threadkeep.domain.streams).
local function due_ms(state)
  local seal, old, lease, silent, long =
    unpack(server.call('HMGET', state, 'seal', 'old', 'lease', 'silent', 'long'))
  if seal then
    return tonumber(old)
  end
  return math.min(tonumber(lease), tonumber(silent), tonumber(long))
end

-- Fix the end of a stream; without a place (`sealed_at`) no repeated close is taken for the one that did. What viewers
-- are told of it (an object that this service wrote) says so too: from now on its message may be in the table.
local function set_seal(state, live, stream, seal, seal_old_ms)
  server.call('HSET', state, 'seal', seal, 'old', digits(now_ms() + seal_old_ms))
  local told = server.call('HGET', live, stream)
  if told then
    server.call('HSET', live, stream, told:sub(1, -2) .. ',"sealed":true}')
  end
end

-- The conversation was deleted.
local function is_buried(gravestone)
  return server.call('EXISTS', gravestone) == 1
end

-- A sealed stream, with all that settling needs.
local function sealed(state, log)
  local epoch, seal, facts, settled = unpack(server.call('HMGET', state, 'epoch', 'seal', 'facts', 'settled'))
  return {'sealed', tonumber(epoch), seal, facts, settled and 1 or 0, server.call('LRANGE', log, 0, -1)}
end

-- Section 4: connections whose lease runs.
local function read_viewers(key)
  return server.call('ZRANGE', key, '(' .. digits(now_ms()), '+inf', 'BYSCORE')
end

-- Section 3.1, what append and close have in common: why this writer may not write, or nil where it may.
local function refuse_writer(known, owner, seal, principal, epoch)
  -- never adopted: an epoch that this tier has lost is opened again first
  if not known or epoch > known or principal ~= owner then
    return {'unknown'}
  end
  -- judged before the seal: whoever was fenced did not set it
  if epoch < known then
    return {'fenced'}
  end
  if seal then
    return {'closed', seal}
  end
  return nil
end

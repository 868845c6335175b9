-- Viewers and those of them that lag (docs/protocol.md, section 4): two sorted sets, each connection in one of them,
-- by when its lease ends.

-- The key goes with its longest lease.
local function keep_longest(key)
  local longest = server.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  if longest then
    server.call('PEXPIREAT', key, digits(tonumber(longest)))
  end
end

-- Move it from the one to the other with the lease that it has, if it is there.
local function move(from, to, connection)
  local lease = server.call('ZSCORE', from, connection)
  if lease then
    server.call('ZREM', from, connection)
    server.call('ZADD', to, lease, connection)
    keep_longest(from)
    keep_longest(to)
  end
end

#!lua
-- One request from each of the buckets, or from none (`threadkeep.domain.rates`). Answers how long to wait, in ms.
-- Each bucket's arguments: the interval in ms, the burst.
local now = now_ms()
local expected, wait = {}, 0
for i, bucket in ipairs(KEYS) do
  local interval, burst = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local at = math.max(tonumber(server.call('GET', bucket) or 0), now)
  wait = math.max(wait, math.ceil(at - now - (burst - 1) * interval))
  expected[i] = at + interval
end
if wait > 0 then
  return wait
end
for i, bucket in ipairs(KEYS) do
  server.call('SET', bucket, string.format('%.3f', expected[i]), 'PX', digits(math.ceil(expected[i] - now) + 1))
end
return 0

#!lua flags=allow-oom
-- Drops a deleted conversation. KEYS: viewers, those of them that lag, all others but the gravestone.
local viewers, lagging = read_viewers(KEYS[1]), read_viewers(KEYS[2])
for _, connection in ipairs(lagging) do
  viewers[#viewers + 1] = connection
end
return {server.call('UNLINK', unpack(KEYS)), viewers}

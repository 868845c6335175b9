#!lua flags=allow-oom
-- with viewing
-- Frames were dropped for these viewers.
local viewers, lagging = KEYS[1], KEYS[2]
for _, connection in ipairs(ARGV) do
  move(viewers, lagging, connection)
end
return {'marked'}

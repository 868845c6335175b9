#!lua
-- with leaf, tail
-- The message is in the table, and now the newest of the tail. (When memory is full: `fill_bare`.)
local register, viewers, gravestone, tail = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local message, keep_ms, element = ARGV[1], ARGV[2], ARGV[3]
local messages_max, bytes_max, tail_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

if not is_buried(gravestone) then
  fill(register, message, keep_ms)
  keep(tail, {element}, messages_max, bytes_max, tail_ms)
end
return read_viewers(viewers)

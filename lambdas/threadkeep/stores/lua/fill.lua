#!lua
-- with leaf, tail, first
-- The message is in the table, and now the newest of the tail. (When memory is full: `fill_bare`.)
local register, viewers, gravestone, tail = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local first, live = KEYS[5], KEYS[6]
local message, keep_ms, element = ARGV[1], ARGV[2], ARGV[3]
local messages_max, bytes_max, tail_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local first_kind = ARGV[7]

if not is_buried(gravestone) then
  note_first(first, register, live, message, first_kind, element, tail_ms)
  fill(register, message, keep_ms)
  keep(tail, {element}, messages_max, bytes_max, tail_ms)
end
return read_viewers(viewers)

#!lua flags=allow-oom
-- with leaf
-- `fill` where memory is full: the claim is filled, and the tail does without the message.
local register, viewers, gravestone = KEYS[1], KEYS[2], KEYS[3]
local message, keep_ms = ARGV[1], ARGV[2]

if not is_buried(gravestone) then
  fill(register, message, keep_ms)
end
return read_viewers(viewers)

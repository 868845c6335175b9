#!lua flags=allow-oom
-- with leaf, tail, first
-- `fill` where memory is full: the claim is filled, and the tail does without the message. Should that be the first one,
-- it is not known any more which is.
local register, viewers, gravestone, first = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local message, keep_ms = ARGV[1], ARGV[2]

if not is_buried(gravestone) then
  local known = known_first(first, register)
  if known and is_older(to_binary(message), known) then
    set_first(first, register, 'none')
  end
  fill(register, message, keep_ms)
end
return read_viewers(viewers)

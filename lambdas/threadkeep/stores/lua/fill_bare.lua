#!lua flags=allow-oom
-- with leaf, tail, first
-- `fill` where memory is full: the claim is filled, and the tail does without the message. Should that be the first one,
-- it is not known any more which is.
local register, viewers, gravestone, first = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local message, keep_ms, first_kind = ARGV[1], ARGV[2], ARGV[3]

if not is_buried(gravestone) then
  local known, id = known_first(first, register), to_binary(message)
  if known and known ~= SEVERAL then
    if is_another_root(first, known, first_kind, id) then
      set_several(first, register)
    elseif is_older(id, known) then
      set_first(first, register, 'unknown')
    end
  end
  fill(register, message, keep_ms)
end
return read_viewers(viewers)

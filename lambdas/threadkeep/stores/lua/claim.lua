#!lua
-- with leaf
-- Claim the place of a message before it is put (docs/protocol.md, section 2, "Turns"). Absent values are empty.
local register_key, live, gravestone = KEYS[1], KEYS[2], KEYS[3]
local message, parent, fork = ARGV[1], ARGV[2], ARGV[3] == '1'
local is_confirmed, newest = ARGV[4] == '1', ARGV[5]
local void_ms, keep_ms = tonumber(ARGV[6]), ARGV[7]

if is_buried(gravestone) then
  return {'erased'}
end
if server.call('HEXISTS', live, message) == 1 then
  return {'id_taken'}
end
local register = read_register(register_key)
if is_confirmed then
  confirm(register_key, register, newest, void_ms, keep_ms)
end
-- claimed already, or just filled: a retry
if not register.claims[message] and message ~= register.leaf then
  if not is_sure(register, void_ms) then
    return {'leaf_unknown'}
  end
  local refusal = refuse_parent(register, server.call('HKEYS', live), parent, fork)
  if refusal then
    return refusal
  end
  if register.claims[parent] and parent > register.leaf then
    return {'parent_pending'}
  end
end
claim(register_key, register, message, keep_ms)
return {'claimed'}

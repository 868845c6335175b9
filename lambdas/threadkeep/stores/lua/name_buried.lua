#!lua flags=allow-oom
-- with leaf, tail
-- Sets the gravestone, from when on nothing new is kept, and names all streams whose keys there may be: as text, or in
-- 16 bytes.
local gravestone, register_key, live, tail = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

server.call('SET', gravestone, '1', 'PX', ARGV[1])
local names, register = server.call('HKEYS', live), read_register(register_key)
if register.leaf and register.leaf ~= '' then
  names[#names + 1] = register.leaf
end
for message in pairs(register.claims) do
  names[#names + 1] = message
end
for _, element in ipairs(server.call('LRANGE', tail, 0, -1)) do
  names[#names + 1] = id_of(element)
end
return names

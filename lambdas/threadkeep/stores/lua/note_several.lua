#!lua flags=allow-oom
-- with leaf, tail, first
-- The table says that several messages are roots, one of them a prompt. A register that stands is kept no longer for it.
local gravestone, register_key, first = KEYS[1], KEYS[2], KEYS[3]
local keep_ms = ARGV[1]

if not is_buried(gravestone) then
  set_several(first, register_key)
  if server.call('PTTL', register_key) < 0 then
    server.call('PEXPIRE', register_key, keep_ms)
  end
end
return {'noted'}

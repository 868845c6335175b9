#!lua flags=no-writes
-- The live streams named (docs/protocol.md, section 2, `conversation.subscribe`), each with its place; those that
-- settled since they were read are left out. KEYS: live, then state and log of each.
local places, now = {}, now_ms()
for i, stream in ipairs(ARGV) do
  local told = server.call('HGET', KEYS[1], stream)
  if told then
    local epoch = tonumber(server.call('HGET', KEYS[2 * i], 'epoch'))
    local is_due = due_ms(KEYS[2 * i]) <= now
    places[#places + 1] = {stream, told, epoch, server.call('LLEN', KEYS[2 * i + 1]), is_due and 1 or 0}
  end
end
return places

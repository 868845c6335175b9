#!lua flags=no-writes
-- Connections whose lease runs (docs/protocol.md, section 4).
return read_viewers(KEYS[1])

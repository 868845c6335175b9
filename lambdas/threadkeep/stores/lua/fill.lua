#!lua flags=allow-oom
-- with leaf
-- The message is in the table.
fill(KEYS[1], ARGV[1], ARGV[2])
return read_viewers(KEYS[2])

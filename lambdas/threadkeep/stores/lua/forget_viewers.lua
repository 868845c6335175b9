#!lua flags=allow-oom
-- Nobody views any longer, whether they lag or not.
return {server.call('UNLINK', KEYS[1], KEYS[2])}

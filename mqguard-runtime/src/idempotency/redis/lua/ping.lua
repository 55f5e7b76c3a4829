-- Uses every command that claims and steps use, and leaves nothing behind: says at start what would fail later.
-- KEYS[1] a key that no record has

-- A server that would refuse the write refuses it before it looks for the key.
redis.call('SET', KEYS[1], 'ping', 'XX', 'PX', 1000)
redis.call('GET', KEYS[1])
redis.call('PTTL', KEYS[1])
return 'pong'

-- Uses every command that claims and steps use, and leaves nothing behind: says at start what would fail later.
-- KEYS[1] a key that no record has

redis.call('TIME')
redis.call('HSET', KEYS[1], 'ping', '1')
redis.call('PEXPIRE', KEYS[1], 1000)
redis.call('HMGET', KEYS[1], 'ping')
redis.call('EXISTS', KEYS[1])
redis.call('HDEL', KEYS[1], 'ping')
return 'pong'

-- Answers a claim: `claim` of protocol.rs, line by line.
-- KEYS[1] the record
-- ARGV    generation, step, owner, lease, ttl, ttl while a letter is owed, max_crashes, consumer, key, message_id
--         (times in milliseconds)
-- Returns granted crashes | busy left | stale | duplicate | letter crashes error

local key = KEYS[1]
local generation, step, owner = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local lease, ttl, owed_ttl, max_crashes = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

-- The server's clock: those of the workers need not agree.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Lua would write a number of this size with an exponent.
local function whole(number)
    return string.format('%.0f', number)
end

-- HSET comes first: it is the one that a server out of memory or a replica refuses, and then nothing has changed. The expiry is
-- set in the same script, so that no record can be left without one; it outlives the lease.
local function grant(crashes)
    redis.call('HSET', key, 'state', 'processing', 'turn', ARGV[1] .. '.' .. ARGV[2], 'owner', owner,
        'lease_until', whole(now + lease), 'crashes', crashes)
    redis.call('HDEL', key, 'error', 'letter')
    redis.call('PEXPIRE', key, whole(math.max(ttl, lease)))
    return { 'granted', crashes }
end

-- The asker becomes the owner of the letter; the record's turn stays.
local function letter(crashes, err)
    redis.call('HSET', key, 'state', 'failed', 'owner', owner, 'lease_until', whole(now + lease), 'crashes', crashes,
        'letter', 'owed')
    redis.call('PEXPIRE', key, whole(math.max(owed_ttl, lease)))
    return { 'letter', crashes, err }
end

local record = redis.call('HMGET', key, 'state', 'turn', 'owner', 'lease_until', 'crashes', 'error', 'letter')
local state, turn, record_owner = record[1], record[2], record[3]

if not state then
    if redis.call('EXISTS', key) == 1 then
        return redis.error_reply('MQGUARD the hash there has no field `state`')
    end
    -- For a person who looks at the record; nothing reads them.
    redis.call('HSET', key, 'consumer', ARGV[8], 'key', ARGV[9], 'message_id', ARGV[10])
    return grant(0)
end

local record_generation, record_step = string.match(turn or '', '^(%d+)%.(%d+)$')
record_generation, record_step = tonumber(record_generation), tonumber(record_step)
if not record_generation then
    return redis.error_reply('MQGUARD its field `turn` is not a turn')
end
local lease_until, crashes = tonumber(record[4] or 0) or 0, tonumber(record[5] or 0) or 0
local live = lease_until > now
local mine = record_owner == owner

if state == 'success' then
    return { 'duplicate' }

elseif state == 'failed' then
    if generation > record_generation then return grant(0) end
    if record[7] ~= 'owed' then return { 'duplicate' } end
    if live and not mine then return { 'busy', lease_until - now } end
    return letter(crashes, record[6])

elseif state == 'pending' or state == 'processing' then
    if generation < record_generation or (generation == record_generation and step < record_step) then return { 'stale' } end
    if state == 'pending' then return grant(crashes) end
    if live and mine and generation == record_generation and step == record_step then return grant(crashes) end
    if live then return { 'busy', lease_until - now } end
    crashes = crashes + 1
    if crashes > max_crashes then return letter(crashes, false) end
    return grant(crashes)
end

return redis.error_reply('MQGUARD its field `state` is not a known state')

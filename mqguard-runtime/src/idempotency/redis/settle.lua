-- Answers a step: `settle` of protocol.rs, line by line.
-- KEYS[1] the record
-- ARGV    step, owner, ttl, ttl while a letter is owed; then for
--         release: generation, step | condemn: lease, error | renew: lease
--         (times in milliseconds)
-- Returns applied | refused

local key = KEYS[1]
local step, owner, ttl, owed_ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- The server's clock: those of the workers need not agree.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Lua would write a number of this size with an exponent.
local function whole(number)
    return string.format('%.0f', number)
end

local record = redis.call('HMGET', key, 'state', 'turn', 'owner', 'letter')
local state, turn, owed = record[1], record[2], record[4] == 'owed'
if record[3] ~= owner then return 'refused' end

-- HSET comes first: it is the one that a server out of memory or a replica refuses, and then nothing has changed.
local function ended(...)
    redis.call('HSET', key, ...)
    redis.call('HDEL', key, 'lease_until', 'error')
    redis.call('PEXPIRE', key, whole(ttl))
    return 'applied'
end

local function renewed(lease, kept, ...)
    redis.call('HSET', key, 'lease_until', whole(now + lease), ...)
    redis.call('PEXPIRE', key, whole(math.max(kept, lease)))
    return 'applied'
end

if step == 'complete' then
    if state == 'processing' then return ended('state', 'success') end
    if state == 'success' then return 'applied' end

elseif step == 'release' then
    local next_turn = ARGV[5] .. '.' .. ARGV[6]
    if state == 'processing' then return ended('state', 'pending', 'turn', next_turn) end
    if state == 'pending' and turn == next_turn then return 'applied' end

elseif step == 'condemn' then
    if state == 'processing' then
        return renewed(tonumber(ARGV[5]), owed_ttl, 'state', 'failed', 'letter', 'owed', 'error', ARGV[6])
    end
    if state == 'failed' and not owed then return 'applied' end
    if state == 'failed' then return renewed(tonumber(ARGV[5]), owed_ttl) end

elseif step == 'lettered' then
    if state == 'failed' and not owed then return 'applied' end
    if state == 'failed' then return ended('letter', 'out') end

elseif step == 'renew' then
    if state == 'processing' then return renewed(tonumber(ARGV[5]), ttl) end
    if state == 'failed' and owed then return renewed(tonumber(ARGV[5]), owed_ttl) end
end

return 'refused'

-- How a record is stored: one string, which tells a person what it is.
--
--   <owner> <state> kept=<ms> lease=<ms> turn=<generation>.<step> crashes=<n> body=<n>[ letter=owed|out][ error=<JSON>] <JSON>
--
-- The last part shows consumer, key and message id; nothing reads it. Owner and state come first so that the usual step compares
-- them without parsing. The free texts are JSON, in which no quote stands without a backslash: ` ["` begins the last part only.
--
-- There is no time in it. Each write sets the expiry to `kept`, so the expiry tells how long ago it was, by the server's clock.

local call = redis.call
local find, match, sub = string.find, string.match, string.sub

local RECORD = '^%x+ (%l+) kept=(%d+) lease=(%d+)() turn=((%d+)%.(%d+)) crashes=(%d+) body=(%d+)() '

local function read(text)
    local state, kept, lease, run, turn, generation, step, crashes, body, run_end = match(text, RECORD)
    local shown = run_end and find(text, ' ["', run_end, true)
    if not shown then error('MQGUARD what is stored there is not a record', 0) end
    local letter = sub(text, run_end, shown - 1)
    return {
        state = state,
        kept = tonumber(kept),
        lease = lease,
        turn = turn,
        generation = tonumber(generation),
        step = tonumber(step),
        crashes = tonumber(crashes),
        body = body,
        owed = sub(letter, 1, 12) == ' letter=owed',
        -- What follows ` letter=owed error=`; nothing when it crashed too often.
        error = sub(letter, 20),
        -- ` turn=... crashes=... body=...`, the last part, and all that follows the lease.
        run = sub(text, run, run_end - 1),
        shown = sub(text, shown),
        rest = sub(text, run),
    }
end

-- One command writes value and expiry: no record can be left without one, and where it is refused (by a server out of memory, a
-- replica) nothing has changed.
local function put(key, head, kept, rest)
    call('SET', key, head .. rest, 'PX', kept)
    return 'applied'
end

-- What is left of the lease; nil when it has lapsed. Both ends are whole milliseconds, so the lease may have begun up to one later
-- than it seems: it lapses one later too, never early.
local function left_of(key, text, record)
    local expires = call('PTTL', key)
    if expires < 0 or expires > record.kept then
        -- Somebody has changed the expiry, or the clock was set back: how old the lease is cannot be told, so it begins now.
        call('SET', key, text, 'PX', record.kept)
        expires = record.kept
    end
    local lease, age = tonumber(record.lease), record.kept - expires
    if lease > 0 and age <= lease then return math.max(lease - age, 1) end
end

-- Answers a step: `settle` of protocol.rs, line by line.
-- head    what the record then begins with: owner, state, kept, lease
-- kept    how long it is kept

-- The record, when it is the asker's.
local function own(key, head)
    local text = call('GET', key)
    if text and sub(text, 1, 33) == sub(head, 1, 33) then return read(text) end
    return { state = 'not of this owner' }
end

-- before  what the record begins with while it is processing: for the usual case, in batch.lua
local function complete(key, head, kept)
    local record = own(key, head)
    if record.state == 'processing' then return put(key, head, kept, record.rest) end
    return record.state == 'success' and 'applied' or 'refused'
end

-- turn    the turn that is out
local function release(key, head, kept, turn)
    local record = own(key, head)
    if record.state == 'processing' then
        return put(key, head, kept, ' turn=' .. turn .. ' crashes=' .. record.crashes .. ' body=' .. record.body .. record.shown)
    end
    return record.state == 'pending' and record.turn == turn and 'applied' or 'refused'
end

-- why     the error
local function condemn(key, head, kept, why)
    local record = own(key, head)
    if record.state == 'processing' then
        return put(key, head, kept, record.run .. ' letter=owed error=' .. why .. record.shown)
    end
    if record.state ~= 'failed' then return 'refused' end
    if not record.owed then return 'applied' end
    return put(key, head, kept, record.rest)
end

local function lettered(key, head, kept)
    local record = own(key, head)
    if record.state ~= 'failed' then return 'refused' end
    if not record.owed then return 'applied' end
    return put(key, head, kept, record.run .. ' letter=out' .. record.shown)
end

-- owed    the head of one that owes a letter, which is kept for longer
local function renew(key, head, kept, owed)
    local record = own(key, head)
    if record.state == 'processing' then return put(key, head, kept, record.rest) end
    if record.state == 'failed' and record.owed then return put(key, owed, match(owed, 'kept=(%d+)'), record.rest) end
    return 'refused'
end

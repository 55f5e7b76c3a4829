-- Answers a claim: `claim` of protocol.rs, line by line.
-- fresh   the record of a first claim
-- kept    how long it is kept
-- extra   <how long it is kept while a letter is owed> <max_crashes>

local function grant(key, fresh, kept, crashes)
    if crashes > 0 then fresh = string.gsub(fresh, ' crashes=0', ' crashes=' .. crashes, 1) end
    call('SET', key, fresh, 'PX', kept)
    return 'granted', crashes
end

-- The asker becomes the owner of the letter; the record's turn stays.
local function letter(key, fresh, owed_kept, record, crashes, why)
    local head = sub(fresh, 1, 33) .. 'failed kept=' .. owed_kept .. ' lease=' .. read(fresh).lease .. ' turn=' .. record.turn
    local owed = ' crashes=' .. crashes .. ' body=' .. record.body .. ' letter=owed'
    if why ~= '' then owed = owed .. ' error=' .. why end
    put(key, head, owed_kept, owed .. record.shown)
    return 'letter', record.generation, crashes, why
end

local function claim(key, fresh, kept, extra)
    local text = call('GET', key)
    if not text then return grant(key, fresh, kept, 0) end

    local record, asked = read(text), read(fresh)
    local owed_kept, max_crashes = match(extra, '(%d+) (%d+)')
    local mine = sub(text, 1, 33) == sub(fresh, 1, 33)
    local state = record.state

    local function again(answer) return record.body == asked.body and answer or 'conflict' end

    if state == 'success' then
        return again('duplicate')

    elseif state == 'failed' then
        if asked.generation > record.generation then return grant(key, fresh, kept, 0) end
        if not record.owed then return again('duplicate') end
        local left = left_of(key, text, record)
        if left and not mine then return 'busy', left end
        return letter(key, fresh, owed_kept, record, record.crashes, record.error)

    elseif state == 'pending' or state == 'processing' then
        local older = asked.generation < record.generation
            or (asked.generation == record.generation and asked.step < record.step)
        if older then return again('stale') end
        if state == 'pending' then return grant(key, fresh, kept, record.crashes) end
        local left = left_of(key, text, record)
        if left and mine and asked.turn == record.turn then return grant(key, fresh, kept, record.crashes) end
        if left then return 'busy', left end
        local crashes = record.crashes + 1
        if crashes > tonumber(max_crashes) then return letter(key, fresh, owed_kept, record, crashes, '') end
        return grant(key, fresh, kept, crashes)
    end

    error('MQGUARD its state `' .. state .. '` is not a known one', 0)
end

-- Answers many questions in their order, each as if it were alone.
-- KEYS    the record that each is about
-- ARGV    four for each: which question, and what it takes: see claim.lua and settle.lua
-- Returns a letter for each answer, in one string; then, in the same order, what some of the answers carry:
--         g granted, after: crashes | b busy: left | s stale | d duplicate | c conflict | l letter: generation, crashes, error or '' |
--         a applied | r refused | e failed: why

local try, find, sub = redis.pcall, string.find, string.sub

-- All records that are completed, read at once: a call costs more than what it reads. Not where an earlier question of this batch was about
-- the same one, nor where the user may not do so.
local found = ARGV[1] == 'complete' and try('MGET', unpack(KEYS))
if found and found.err then found = false end
local touched = {}

local function read(n, key)
    if found and not touched[key] then return found[n] end
    return try('GET', key)
end

-- The completion of a message that its asker is processing: nearly all that is asked, first claims need no script. Anything else,
-- errors too, is left to the functions that know all cases.
local function usual(n, question, key, head, kept, before)
    if question ~= 'complete' then return end
    local text = read(n, key)
    if type(text) ~= 'string' or find(text, before, 1, true) ~= 1 then return end
    local rest = find(text, ' turn=', 44, true)
    return rest and try('PSETEX', key, kept, head .. sub(text, rest)).ok and 'a'
end

local questions, letters
local answers, carried = {}, {}
for n = 1, #KEYS do
    local at = 4 * n
    local question, key, head, kept, extra = ARGV[at - 3], KEYS[n], ARGV[at - 2], ARGV[at - 1], ARGV[at]
    local answer = usual(n, question, key, head, kept, extra)
    if not answer then
        if not questions then questions, letters = all_questions() end
        local done, one, two, three
        done, answer, one, two, three = pcall(questions[question], key, head, kept, extra)
        if done then
            answer = letters[answer]
        else
            -- A record that cannot be used fails alone. What went wrong is a table in some versions of the server.
            answer, one = 'e', type(answer) == 'table' and answer.err or answer
        end
        if one then carried[#carried + 1] = one end
        if two then carried[#carried + 1] = two end
        if three then carried[#carried + 1] = three end
    end
    touched[key], answers[n] = true, answer
end
return { table.concat(answers), unpack(carried) }

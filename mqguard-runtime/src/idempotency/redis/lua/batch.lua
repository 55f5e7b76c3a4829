-- Answers many questions in their order, each as if it were alone.
-- KEYS    the record that each is about
-- ARGV    four for each: which question, and what it takes
-- Returns a letter for each answer, in one string; then, in the same order, what some of the answers carry:
--         G granted | g granted, after: crashes | b busy: left | s stale | d duplicate | l letter: crashes, error or '' |
--         a applied | r refused | e failed: why

local questions =
    { claim = claim, complete = complete, release = release, condemn = condemn, lettered = lettered, renew = renew }
local letters = {
    first = 'G', granted = 'g', busy = 'b', stale = 's', duplicate = 'd', letter = 'l', applied = 'a', refused = 'r',
}

local answers, carried = {}, {}
for n = 1, #KEYS do
    local at = 4 * n
    local done, answer, one, other = pcall(questions[ARGV[at - 3]], KEYS[n], ARGV[at - 2], ARGV[at - 1], ARGV[at])
    if done then
        answers[n] = letters[answer]
    else
        -- A record that cannot be used fails alone. What went wrong is a table in some versions of the server.
        answers[n] = 'e'
        one = type(answer) == 'table' and answer.err or answer
    end
    if one then carried[#carried + 1] = one end
    if other then carried[#carried + 1] = other end
end
return { table.concat(answers), unpack(carried) }

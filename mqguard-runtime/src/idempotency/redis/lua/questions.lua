
-- What batch.lua looks up.
return
    { claim = claim, complete = complete, release = release, condemn = condemn, lettered = lettered, renew = renew },
    { granted = 'g', busy = 'b', stale = 's', duplicate = 'd', conflict = 'c', letter = 'l', applied = 'a', refused = 'r' }

-- mqguard, schema version 1: what was done with which message.
--
-- Applied by mqguard itself, or before it starts: sqlite3 FILE < 0001_records.sql

CREATE TABLE mq_schema (
    version INTEGER PRIMARY KEY,
    applied_at TEXT NOT NULL DEFAULT (datetime('now'))
) STRICT;

-- One row for each message of a consumer (a queue), from its first delivery on. Times are microseconds since 1970, UTC: to read them,
-- datetime(created_at / 1000000, 'unixepoch').
CREATE TABLE mq_consume_record (
    consumer TEXT NOT NULL,
    -- Empty when the identity has none. What is over 512 bytes is kept as `sha256:` and its digest.
    business_key TEXT NOT NULL,
    msg_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'success', 'failed')),
    -- Which run: of this replay from the dead letters, after this many retries.
    generation INTEGER NOT NULL DEFAULT 0,
    step INTEGER NOT NULL DEFAULT 0,
    -- A token of the run that made the last change.
    owner TEXT,
    lease_until INTEGER,
    -- Leases that have lapsed.
    crashes INTEGER NOT NULL DEFAULT 0,
    -- The first eight bytes of the body's MD5.
    body INTEGER,
    last_error TEXT,
    -- Whether the dead letter of a failed message is out.
    lettered INTEGER NOT NULL DEFAULT 0,
    -- Counts the changes.
    revision INTEGER NOT NULL DEFAULT 0,
    -- From then on the message is as if it had never been there.
    kept_until INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- The unique constraint.
    PRIMARY KEY (consumer, business_key, msg_id)
) STRICT, WITHOUT ROWID;

-- For retention, which deletes what has ended.
CREATE INDEX mq_consume_record_ended ON mq_consume_record (kept_until) WHERE status = 'success' OR (status = 'failed' AND lettered);

-- The same for consumers in the mode `state_machine`: here a producer may have registered a message as pending.
CREATE TABLE mq_msg_log (
    consumer TEXT NOT NULL,
    business_key TEXT NOT NULL,
    msg_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'success', 'failed')),
    generation INTEGER NOT NULL DEFAULT 0,
    step INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    lease_until INTEGER,
    crashes INTEGER NOT NULL DEFAULT 0,
    body INTEGER,
    last_error TEXT,
    lettered INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    kept_until INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (consumer, business_key, msg_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX mq_msg_log_ended ON mq_msg_log (kept_until) WHERE status = 'success' OR (status = 'failed' AND lettered);

INSERT INTO mq_schema (version) VALUES (1);

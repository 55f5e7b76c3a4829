-- mqguard, schema version 1: what was done with which message.
--
-- Applied by mqguard itself, or by a DBA before it starts (psql -1 -f 0001_records.sql).

CREATE TABLE mq_schema (
    version BIGINT PRIMARY KEY,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- One row for each message of a consumer (a queue), from its first delivery on.
CREATE TABLE mq_consume_record (
    consumer TEXT COLLATE "C" NOT NULL,
    -- Empty when the identity has none. What is over 512 bytes is kept as `sha256:` and its digest.
    business_key TEXT COLLATE "C" NOT NULL,
    msg_id TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'success', 'failed')),
    -- Which run: of this replay from the dead letters, after this many retries.
    generation BIGINT NOT NULL DEFAULT 0,
    step BIGINT NOT NULL DEFAULT 0,
    -- A token of the run that made the last change.
    owner TEXT,
    lease_until TIMESTAMPTZ,
    -- Leases that have lapsed.
    crashes BIGINT NOT NULL DEFAULT 0,
    -- The first eight bytes of the body's MD5.
    body BIGINT,
    last_error TEXT,
    -- Whether the dead letter of a failed message is out.
    lettered BOOLEAN NOT NULL DEFAULT FALSE,
    -- Counts the changes.
    revision BIGINT NOT NULL DEFAULT 0,
    -- From then on the message is as if it had never been there.
    kept_until TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT mq_consume_record_identity PRIMARY KEY (consumer, business_key, msg_id)
);

-- For retention, which deletes what has ended.
CREATE INDEX mq_consume_record_ended ON mq_consume_record (kept_until) WHERE status = 'success' OR (status = 'failed' AND lettered);

-- The same for consumers in the mode `state_machine`: here a producer may have registered a message as pending.
CREATE TABLE mq_msg_log (LIKE mq_consume_record INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
ALTER TABLE mq_msg_log ADD CONSTRAINT mq_msg_log_identity PRIMARY KEY (consumer, business_key, msg_id);
CREATE INDEX mq_msg_log_ended ON mq_msg_log (kept_until) WHERE status = 'success' OR (status = 'failed' AND lettered);

INSERT INTO mq_schema (version) VALUES (1);

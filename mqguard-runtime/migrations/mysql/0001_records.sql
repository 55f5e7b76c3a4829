-- mqguard, schema version 1: what was done with which message.
--
-- Applied by mqguard itself, or by a DBA before it starts (mysql DATABASE < 0001_records.sql). Each statement may be run again: MySQL
-- and MariaDB commit each by itself.

CREATE TABLE IF NOT EXISTS mq_schema (
    version BIGINT PRIMARY KEY,
    applied_at DATETIME(6) NOT NULL
) ENGINE = InnoDB;

-- One row for each message of a consumer (a queue), from its first delivery on. All times are UTC. The parts of the identity are bytes,
-- so that no collation takes one for another: to read them, CONVERT(msg_id USING utf8mb4).
CREATE TABLE IF NOT EXISTS mq_consume_record (
    consumer VARBINARY(512) NOT NULL,
    -- Empty when the identity has none. What is over 512 bytes is kept as `sha256:` and its digest.
    business_key VARBINARY(512) NOT NULL,
    msg_id VARBINARY(512) NOT NULL,
    status VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    -- Which run: of this replay from the dead letters, after this many retries.
    generation BIGINT NOT NULL DEFAULT 0,
    step BIGINT NOT NULL DEFAULT 0,
    -- A token of the run that made the last change.
    owner VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    lease_until DATETIME(6) NULL,
    -- Leases that have lapsed.
    crashes BIGINT NOT NULL DEFAULT 0,
    -- The first eight bytes of the body's MD5.
    body BIGINT NULL,
    last_error TEXT CHARACTER SET utf8mb4 NULL,
    -- Whether the dead letter of a failed message is out.
    lettered BOOLEAN NOT NULL DEFAULT FALSE,
    -- Counts the changes.
    revision BIGINT NOT NULL DEFAULT 0,
    -- From then on the message is as if it had never been there.
    kept_until DATETIME(6) NOT NULL,
    created_at DATETIME(6) NOT NULL,
    updated_at DATETIME(6) NOT NULL,
    -- The unique constraint.
    PRIMARY KEY (consumer, business_key, msg_id),
    -- For retention, which deletes what has ended.
    KEY mq_consume_record_kept (kept_until),
    CONSTRAINT mq_consume_record_status CHECK (status IN ('pending', 'processing', 'success', 'failed'))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The same for consumers in the mode `state_machine`: here a producer may have registered a message as pending.
CREATE TABLE IF NOT EXISTS mq_msg_log (
    consumer VARBINARY(512) NOT NULL,
    business_key VARBINARY(512) NOT NULL,
    msg_id VARBINARY(512) NOT NULL,
    status VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    generation BIGINT NOT NULL DEFAULT 0,
    step BIGINT NOT NULL DEFAULT 0,
    owner VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
    lease_until DATETIME(6) NULL,
    crashes BIGINT NOT NULL DEFAULT 0,
    body BIGINT NULL,
    last_error TEXT CHARACTER SET utf8mb4 NULL,
    lettered BOOLEAN NOT NULL DEFAULT FALSE,
    revision BIGINT NOT NULL DEFAULT 0,
    kept_until DATETIME(6) NOT NULL,
    created_at DATETIME(6) NOT NULL,
    updated_at DATETIME(6) NOT NULL,
    PRIMARY KEY (consumer, business_key, msg_id),
    KEY mq_msg_log_kept (kept_until),
    CONSTRAINT mq_msg_log_status CHECK (status IN ('pending', 'processing', 'success', 'failed'))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT INTO mq_schema (version, applied_at) VALUES (1, UTC_TIMESTAMP(6)) ON DUPLICATE KEY UPDATE version = 1;

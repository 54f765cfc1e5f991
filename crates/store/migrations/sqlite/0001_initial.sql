-- The first schema.
--
-- `tasks` holds what is not final, in order of creation (rowid = sequence). What is final moves to
-- one of two history tables, in order of finishing. Times are microseconds since the Unix epoch,
-- ids and uids 16 bytes, hashes and fingerprints unsigned 64 bits stored as signed.

-- Small numbers that must survive: `next_seq` is the first sequence that was never given,
-- `max_id_high` and `max_id_low` are no less than every task id of version 7 that is stored,
-- `calendar_version` is the latest version that a calendar was given.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES
    ('next_seq', 1), ('max_id_high', 0), ('max_id_low', 0), ('calendar_version', 0);

CREATE TABLE namespaces (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE kinds (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE queues (
    id              INTEGER PRIMARY KEY,
    namespace       INTEGER NOT NULL,
    name            TEXT NOT NULL,
    version         INTEGER NOT NULL,
    partitions_ever INTEGER NOT NULL,
    config          TEXT NOT NULL,
    UNIQUE (namespace, name)
) STRICT;

CREATE TABLE schedules (
    uid        BLOB PRIMARY KEY,
    namespace  INTEGER NOT NULL,
    name       TEXT NOT NULL,
    queue      INTEGER NOT NULL,
    part       INTEGER NOT NULL,
    shard      INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    paused     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    cursor     TEXT NOT NULL,
    doc        TEXT NOT NULL,
    UNIQUE (namespace, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedules_shard ON schedules (shard);

CREATE TABLE calendars (
    id         INTEGER PRIMARY KEY,
    namespace  INTEGER NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    doc        TEXT NOT NULL,
    UNIQUE (namespace, name)
) STRICT;

-- Which schedules name which calendars, kept with the schedules.
CREATE TABLE schedule_calendars (
    namespace INTEGER NOT NULL,
    calendar  TEXT NOT NULL,
    schedule  TEXT NOT NULL,
    uid       BLOB NOT NULL,
    PRIMARY KEY (namespace, calendar, schedule)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_calendars_uid ON schedule_calendars (uid);

-- The latest epoch of each shard that was ever held. Who holds it now is known to the one
-- process that has this file open.
CREATE TABLE leases (
    shard INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL
) STRICT;

CREATE TABLE tasks (
    seq              INTEGER PRIMARY KEY,
    id               BLOB NOT NULL,
    namespace        INTEGER NOT NULL,
    queue            INTEGER NOT NULL,
    part             INTEGER NOT NULL,
    shard            INTEGER NOT NULL,
    state            INTEGER NOT NULL, -- 0 scheduled, 1 running
    overdue          INTEGER NOT NULL, -- 1 only while scheduled
    version          INTEGER NOT NULL,
    npri             INTEGER NOT NULL, -- negated priority
    flags            INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    lost             INTEGER NOT NULL,
    released         INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    large            INTEGER NOT NULL, -- 1: the payload is in `payloads`
    kind             INTEGER NOT NULL,
    bucket           INTEGER NOT NULL, -- the five minutes of `due`, since 1970
    fine             INTEGER NOT NULL, -- the slot in that bucket: see sqlite/bucket.rs
    due              INTEGER NOT NULL,
    first_due        INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    expires          INTEGER,
    weight           INTEGER NOT NULL,
    fingerprint      INTEGER,
    concurrency_hash INTEGER NOT NULL,
    task_key         TEXT,
    concurrency_key  TEXT,
    schedule_uid     BLOB,
    origin           TEXT,
    logical          INTEGER,
    schedule_name    TEXT,
    open             TEXT, -- the attempt under way, JSON
    progress         TEXT,
    attempts         TEXT NOT NULL, -- the ended attempts: JSON objects with commas between
    spec             TEXT NOT NULL, -- what has no column of its own, JSON
    payload          TEXT
) STRICT;

CREATE UNIQUE INDEX tasks_id ON tasks (namespace, id);
CREATE UNIQUE INDEX tasks_key ON tasks (task_key, queue) WHERE task_key IS NOT NULL;
CREATE UNIQUE INDEX tasks_occurrence ON tasks (schedule_uid, origin, logical)
    WHERE schedule_uid IS NOT NULL;
-- The outermost wheel: buckets of all shards, without those marked overdue, then those marked. Not
-- by shard and not finer: what is inserted is spread over the ends of buckets, a page for each.
CREATE INDEX tasks_due ON tasks (overdue, bucket, fine) WHERE state = 0;
CREATE INDEX tasks_overdue ON tasks (queue, part, npri, due) WHERE overdue = 1;
CREATE INDEX tasks_running ON tasks (shard, queue) WHERE state = 1;
CREATE INDEX tasks_queue ON tasks (queue);

-- Payloads over 1 KiB, so that starting, retrying and finishing a task does not copy them.
CREATE TABLE payloads (
    seq     INTEGER PRIMARY KEY,
    payload TEXT NOT NULL
) STRICT;

CREATE TABLE outputs (
    seq     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    total   INTEGER NOT NULL,
    head    BLOB NOT NULL,
    tail    BLOB NOT NULL,
    PRIMARY KEY (seq, attempt)
) STRICT;

CREATE TABLE inbox (
    shard INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (shard, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE history_succeeded (
    fin             INTEGER PRIMARY KEY,
    seq             INTEGER NOT NULL,
    id              BLOB NOT NULL,
    namespace       INTEGER NOT NULL,
    queue           INTEGER NOT NULL,
    part            INTEGER NOT NULL,
    shard           INTEGER NOT NULL,
    state           INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    npri            INTEGER NOT NULL,
    attempt         INTEGER NOT NULL,
    lost            INTEGER NOT NULL,
    released        INTEGER NOT NULL,
    large           INTEGER NOT NULL,
    kind            INTEGER NOT NULL,
    due             INTEGER NOT NULL,
    first_due       INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    finished_at     INTEGER NOT NULL,
    expires         INTEGER,
    fingerprint     INTEGER,
    task_key        TEXT,
    concurrency_key TEXT,
    schedule_uid    BLOB,
    origin          TEXT,
    logical         INTEGER,
    schedule_name   TEXT,
    reason          TEXT,
    skipped         TEXT,
    progress        TEXT,
    attempts        TEXT NOT NULL,
    spec            TEXT NOT NULL,
    payload         TEXT
) STRICT;

CREATE UNIQUE INDEX history_succeeded_id ON history_succeeded (namespace, id);
CREATE INDEX history_succeeded_queue ON history_succeeded (queue, seq);
CREATE INDEX history_succeeded_key ON history_succeeded (task_key, seq)
    WHERE task_key IS NOT NULL;
CREATE INDEX history_succeeded_schedule ON history_succeeded (schedule_uid, seq)
    WHERE schedule_uid IS NOT NULL;
CREATE UNIQUE INDEX history_succeeded_occurrence
    ON history_succeeded (schedule_uid, origin, logical) WHERE schedule_uid IS NOT NULL;

CREATE TABLE history_other (
    fin             INTEGER PRIMARY KEY,
    seq             INTEGER NOT NULL,
    id              BLOB NOT NULL,
    namespace       INTEGER NOT NULL,
    queue           INTEGER NOT NULL,
    part            INTEGER NOT NULL,
    shard           INTEGER NOT NULL,
    state           INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    npri            INTEGER NOT NULL,
    attempt         INTEGER NOT NULL,
    lost            INTEGER NOT NULL,
    released        INTEGER NOT NULL,
    large           INTEGER NOT NULL,
    kind            INTEGER NOT NULL,
    due             INTEGER NOT NULL,
    first_due       INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    finished_at     INTEGER NOT NULL,
    expires         INTEGER,
    fingerprint     INTEGER,
    task_key        TEXT,
    concurrency_key TEXT,
    schedule_uid    BLOB,
    origin          TEXT,
    logical         INTEGER,
    schedule_name   TEXT,
    reason          TEXT,
    skipped         TEXT,
    progress        TEXT,
    attempts        TEXT NOT NULL,
    spec            TEXT NOT NULL,
    payload         TEXT
) STRICT;

CREATE UNIQUE INDEX history_other_id ON history_other (namespace, id);
CREATE INDEX history_other_queue ON history_other (queue, state, seq);
CREATE INDEX history_other_key ON history_other (task_key, seq) WHERE task_key IS NOT NULL;
CREATE INDEX history_other_schedule ON history_other (schedule_uid, seq)
    WHERE schedule_uid IS NOT NULL;
CREATE UNIQUE INDEX history_other_occurrence ON history_other (schedule_uid, origin, logical)
    WHERE schedule_uid IS NOT NULL;

-- Tasks by queue and state, kept by every write.
CREATE TABLE counters (
    queue INTEGER NOT NULL,
    state INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;

-- Rows are appended with n = 1, 2, … and folded into n = 0.
CREATE TABLE stats (
    minute INTEGER NOT NULL,
    shard  INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    rows   TEXT NOT NULL,
    PRIMARY KEY (minute, shard, n)
) STRICT, WITHOUT ROWID;

CREATE INDEX stats_unfolded ON stats (shard, minute) WHERE n > 0;

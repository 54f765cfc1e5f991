-- The first schema.
--
-- The same shape as SQLite's (../sqlite/0001_initial.sql): `tasks` holds what is not final; what is
-- final moves to one of two history tables, in order of finishing. Times are microseconds since the
-- Unix epoch; unsigned numbers are stored as signed ones of the same bits; texts sort by bytes.
--
-- Everything is created in the schema that the search path names first. Plain SQL: no extension, no
-- function, no trigger, no foreign key. History is not partitioned: see docs/decisions/0009.

-- `calendar_version` is the latest version that a calendar was given. `catalogue` is locked by whoever
-- creates a namespace or a queue, so that their ids are given in order and without gaps.
CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);

INSERT INTO meta (name, value) VALUES ('calendar_version', 0), ('catalogue', 0);

CREATE TABLE namespaces (
    id   integer PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE queues (
    id              integer PRIMARY KEY,
    namespace       integer NOT NULL,
    name            text COLLATE "C" NOT NULL,
    version         integer NOT NULL,
    partitions_ever integer NOT NULL,
    config          text NOT NULL,
    UNIQUE (namespace, name)
);

CREATE TABLE schedules (
    uid        uuid PRIMARY KEY,
    namespace  integer NOT NULL,
    name       text COLLATE "C" NOT NULL,
    queue      integer NOT NULL,
    part       integer NOT NULL,
    shard      smallint NOT NULL,
    version    integer NOT NULL,
    paused     boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    cursor     text NOT NULL,
    doc        text NOT NULL,
    UNIQUE (namespace, name)
);

CREATE INDEX schedules_shard ON schedules (shard);

CREATE TABLE calendars (
    namespace  integer NOT NULL,
    name       text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    doc        text NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- Which schedules name which calendars, kept with the schedules.
CREATE TABLE schedule_calendars (
    namespace integer NOT NULL,
    calendar  text COLLATE "C" NOT NULL,
    schedule  text COLLATE "C" NOT NULL,
    uid       uuid NOT NULL,
    PRIMARY KEY (namespace, calendar, schedule)
);

CREATE INDEX schedule_calendars_uid ON schedule_calendars (uid);

-- All shards, from the beginning; epoch 0 was never held. Batches lock the rows of their shards
-- FOR SHARE, whoever changes them FOR UPDATE.
CREATE TABLE leases (
    shard smallint PRIMARY KEY,
    epoch bigint NOT NULL,
    owner text COLLATE "C",
    until bigint NOT NULL
);

INSERT INTO leases (shard, epoch, owner, until) SELECT n, 0, NULL, 0 FROM generate_series(0, 255) AS n;

-- Sequences are given in blocks, each used by the batch that drew it.
CREATE SEQUENCE task_seq INCREMENT BY 1024;

-- The place of each opened store among the counters.
CREATE SEQUENCE writer_seq;

CREATE TABLE tasks (
    seq              bigint PRIMARY KEY,
    due              bigint NOT NULL,
    first_due        bigint NOT NULL,
    created_at       bigint NOT NULL,
    expires          bigint,
    fingerprint      bigint,
    concurrency_hash bigint NOT NULL,
    kind_hash        bigint NOT NULL,
    logical          bigint,
    id               uuid NOT NULL,
    schedule_uid     uuid,
    namespace        integer NOT NULL,
    queue            integer NOT NULL,
    part             integer NOT NULL,
    version          integer NOT NULL,
    attempt          integer NOT NULL,
    lost             integer NOT NULL,
    released         integer NOT NULL,
    weight           integer NOT NULL,
    shard            smallint NOT NULL,
    state            smallint NOT NULL, -- 0 scheduled, 1 running
    npri             smallint NOT NULL, -- negated priority
    flags            smallint NOT NULL,
    overdue          boolean NOT NULL,  -- only while scheduled
    cancel_requested boolean NOT NULL,
    large            boolean NOT NULL,  -- the payload is in `payloads`
    inbox            boolean NOT NULL,  -- it was inserted with an inbox row
    kind             text COLLATE "C" NOT NULL,
    task_key         text COLLATE "C",
    concurrency_key  text COLLATE "C",
    origin           text COLLATE "C",
    schedule_name    text COLLATE "C",
    open             text,          -- the attempt under way, JSON
    progress         text,
    attempts         text NOT NULL, -- the ended attempts: JSON objects with commas between
    spec             text NOT NULL, -- what has no column of its own, JSON
    payload          text
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.5,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);

CREATE UNIQUE INDEX tasks_id ON tasks (id, namespace);
CREATE UNIQUE INDEX tasks_key ON tasks (task_key, queue) WHERE task_key IS NOT NULL;
CREATE UNIQUE INDEX tasks_occurrence ON tasks (schedule_uid, origin, logical)
    WHERE schedule_uid IS NOT NULL;
-- The outermost wheel, in order of due time, for all shards: see docs/decisions/0009.
CREATE INDEX tasks_due ON tasks (overdue, due, seq) WHERE state = 0;
CREATE INDEX tasks_overdue ON tasks (queue, part, npri, due, seq) WHERE overdue;
CREATE INDEX tasks_running ON tasks (shard, seq) WHERE state = 1;
CREATE INDEX tasks_queue ON tasks (queue, seq);

-- Payloads over 1 KiB, so that starting, retrying and finishing a task does not copy them.
CREATE TABLE payloads (
    seq     bigint PRIMARY KEY,
    payload text NOT NULL
);

CREATE TABLE outputs (
    seq     bigint NOT NULL,
    attempt integer NOT NULL,
    total   bigint NOT NULL,
    head    bytea NOT NULL,
    tail    bytea NOT NULL,
    PRIMARY KEY (seq, attempt)
);

CREATE TABLE inbox (
    shard smallint NOT NULL,
    seq   bigint NOT NULL,
    PRIMARY KEY (shard, seq)
);

CREATE TABLE history_succeeded (
    fin             bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    seq             bigint NOT NULL,
    due             bigint NOT NULL,
    first_due       bigint NOT NULL,
    created_at      bigint NOT NULL,
    finished_at     bigint NOT NULL,
    expires         bigint,
    fingerprint     bigint,
    logical         bigint,
    id              uuid NOT NULL,
    schedule_uid    uuid,
    namespace       integer NOT NULL,
    queue           integer NOT NULL,
    part            integer NOT NULL,
    version         integer NOT NULL,
    attempt         integer NOT NULL,
    lost            integer NOT NULL,
    released        integer NOT NULL,
    shard           smallint NOT NULL,
    state           smallint NOT NULL,
    npri            smallint NOT NULL,
    large           boolean NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    task_key        text COLLATE "C",
    concurrency_key text COLLATE "C",
    origin          text COLLATE "C",
    schedule_name   text COLLATE "C",
    reason          text,
    skipped         text,
    progress        text,
    attempts        text NOT NULL,
    spec            text NOT NULL,
    payload         text
);

CREATE UNIQUE INDEX history_succeeded_id ON history_succeeded (id, namespace);
CREATE INDEX history_succeeded_queue ON history_succeeded (queue, seq);
CREATE INDEX history_succeeded_key ON history_succeeded (task_key, seq) WHERE task_key IS NOT NULL;
CREATE INDEX history_succeeded_schedule ON history_succeeded (schedule_uid, seq)
    WHERE schedule_uid IS NOT NULL;
CREATE UNIQUE INDEX history_succeeded_occurrence
    ON history_succeeded (schedule_uid, origin, logical) WHERE schedule_uid IS NOT NULL;

CREATE TABLE history_other (
    fin             bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    seq             bigint NOT NULL,
    due             bigint NOT NULL,
    first_due       bigint NOT NULL,
    created_at      bigint NOT NULL,
    finished_at     bigint NOT NULL,
    expires         bigint,
    fingerprint     bigint,
    logical         bigint,
    id              uuid NOT NULL,
    schedule_uid    uuid,
    namespace       integer NOT NULL,
    queue           integer NOT NULL,
    part            integer NOT NULL,
    version         integer NOT NULL,
    attempt         integer NOT NULL,
    lost            integer NOT NULL,
    released        integer NOT NULL,
    shard           smallint NOT NULL,
    state           smallint NOT NULL,
    npri            smallint NOT NULL,
    large           boolean NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    task_key        text COLLATE "C",
    concurrency_key text COLLATE "C",
    origin          text COLLATE "C",
    schedule_name   text COLLATE "C",
    reason          text,
    skipped         text,
    progress        text,
    attempts        text NOT NULL,
    spec            text NOT NULL,
    payload         text
);

CREATE UNIQUE INDEX history_other_id ON history_other (id, namespace);
CREATE INDEX history_other_queue ON history_other (queue, state, seq);
CREATE INDEX history_other_key ON history_other (task_key, seq) WHERE task_key IS NOT NULL;
CREATE INDEX history_other_schedule ON history_other (schedule_uid, seq)
    WHERE schedule_uid IS NOT NULL;
CREATE UNIQUE INDEX history_other_occurrence ON history_other (schedule_uid, origin, logical)
    WHERE schedule_uid IS NOT NULL;

-- Tasks by queue and state, kept by every write. Each opened store adds to rows of its own, so that
-- nodes do not wait for each other; the sum counts.
CREATE TABLE counters (
    queue integer NOT NULL,
    state smallint NOT NULL,
    slot  smallint NOT NULL,
    n     bigint NOT NULL,
    PRIMARY KEY (queue, state, slot)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);

-- Rows are appended with n = 1, 2, … and folded into n = 0.
CREATE TABLE stats (
    minute bigint NOT NULL,
    shard  smallint NOT NULL,
    n      bigint GENERATED BY DEFAULT AS IDENTITY,
    rows   text NOT NULL,
    PRIMARY KEY (minute, shard, n)
);

CREATE INDEX stats_unfolded ON stats (shard, minute) WHERE n > 0;

//! The bounds of requests, in one place.
//!
//! Every bound that a request can run into is a field here, with its default. Which of them a
//! request ran into is said in the reply. Deliberately absent: limits of queues, which are data,
//! and bounds of the node and the store, which are theirs.

/// Microseconds per day.
const DAY: i64 = 86_400_000_000;

/// What a request may ask for. Durations are microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Bytes of a request body. Default 16 MiB.
    pub body_bytes: usize,
    /// Bytes of a payload, a result or a progress report as JSON text; also of the variable parts
    /// of a target together. Default 256 KiB.
    pub payload_bytes: usize,
    /// How deep arrays and objects of a payload may nest. Default 64.
    pub payload_depth: usize,
    /// Digits of one number of a payload, exponent included. Default 64.
    pub number_digits: usize,
    /// Tasks of a batch. Default 10,000.
    pub batch_tasks: usize,
    /// Tags of a task. Default 32.
    pub tags: usize,
    /// Bytes of a tag's name, and of its value. Default 256.
    pub tag_bytes: usize,
    /// Characters of a name or key. Default 200.
    pub name_chars: usize,
    /// How far ahead an instant or a delay may lie. Default 100 years.
    pub horizon: i64,
    /// The longest attempt timeout. Default 365 days.
    pub timeout_max: i64,
    /// The most attempts of a task, and the most that may be lost. Default 1,000.
    pub attempts_max: u32,
    /// The longest wait of a backoff. Default 365 days.
    pub backoff_max: i64,
    /// The greatest factor of an exponential backoff. Default 1,000.
    pub factor_max: f64,
    /// Bytes of a URL. Default 8 KiB.
    pub url_bytes: usize,
    /// Headers of an `http` target. Default 64.
    pub headers: usize,
    /// Bytes of a header's value. Default 8 KiB.
    pub header_bytes: usize,
    /// Arguments of a command, and variables of its environment. Default 1,000.
    pub arguments: usize,
    /// Attempts of a queue that may be under way. Default 100,000.
    pub concurrency_max: u32,
    /// Starts per period of a queue's rate, and its burst. Default 1,000,000.
    pub rate_max: u32,
    /// Partitions of a queue. Default 1,024.
    pub partitions_max: u16,
    /// Tasks of one claim. Default 1,000.
    pub claim_max: usize,
    /// How long a claim may wait. Default 60 s.
    pub claim_wait_max: i64,
    /// Kinds a claim may name. Default 100.
    pub claim_kinds: usize,
    /// Attempts in one `complete` or `heartbeat`. Default 10,000.
    pub tokens: usize,
    /// Bytes of log in one heartbeat of an attempt. Default 64 KiB.
    pub log_bytes: usize,
    /// Characters kept of an error that a worker reports; more are cut. Default 2,000.
    pub error_chars: usize,
    /// Items of a page unless asked otherwise. Default 100.
    pub page_default: usize,
    /// Items of a page. Default 1,000.
    pub page_max: usize,
    /// Tasks that one request by filter changes. Default 1,000.
    pub many: usize,
    /// Occurrences of a preview. Default 1,000.
    pub preview: usize,
    /// Dates and ranges of a calendar together. Default 10,000.
    pub calendar_dates: usize,
    /// Calendars of a namespace. Default 1,000.
    pub calendars: usize,
    /// Calendars that a schedule names, and that a preview is given. Default 16.
    pub excludes: usize,
    /// Minutes of statistics that one request covers. Default 44,640 (31 days).
    pub stats_minutes: i64,
    /// Misfires that `all` may run. Default 10,000.
    pub misfire_limit: u32,
    /// Occurrences of a backfill. Default 100,000.
    pub backfill: u64,
    /// Tasks of a backfill that may be live at once. Default 1,000.
    pub backfill_in_flight: u32,
    /// Replies that go on until the client leaves (events, followed output). Default 1,000.
    pub streams: usize,
    /// Workers that are remembered. Default 10,000.
    pub workers: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 16 << 20,
            payload_bytes: 256 << 10,
            payload_depth: 64,
            number_digits: 64,
            batch_tasks: 10_000,
            tags: 32,
            tag_bytes: 256,
            name_chars: 200,
            horizon: 36_525 * DAY,
            timeout_max: 365 * DAY,
            attempts_max: 1_000,
            backoff_max: 365 * DAY,
            factor_max: 1_000.0,
            url_bytes: 8 << 10,
            headers: 64,
            header_bytes: 8 << 10,
            arguments: 1_000,
            concurrency_max: 100_000,
            rate_max: 1_000_000,
            partitions_max: 1_024,
            claim_max: 1_000,
            claim_wait_max: 60_000_000,
            claim_kinds: 100,
            tokens: 10_000,
            log_bytes: 64 << 10,
            error_chars: 2_000,
            page_default: 100,
            page_max: 1_000,
            many: 1_000,
            preview: 1_000,
            calendar_dates: 10_000,
            calendars: 1_000,
            excludes: 16,
            stats_minutes: 44_640,
            misfire_limit: 10_000,
            backfill: 100_000,
            backfill_in_flight: 1_000,
            streams: 1_000,
            workers: 10_000,
        }
    }
}

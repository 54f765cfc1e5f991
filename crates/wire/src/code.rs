//! The stable codes of problem documents. A code never changes its meaning; new ones may come.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $title:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $code;)*

        /// Every code.
        pub const ALL: &[&str] = &[$($code),*];

        /// What a code stands for in a few words; for a code that is not known here, `Error`.
        pub fn title(code: &str) -> &'static str {
            match code {
                $($code => $title,)*
                _ => "Error",
            }
        }
    };
}

codes! {
    /// 400: the body or query is not the document it should be.
    MALFORMED = "malformed", "The request is malformed";
    /// 401: the token is missing or wrong.
    UNAUTHORIZED = "unauthorized", "The token is missing or wrong";
    /// 403: not allowed here, such as a foreign `Host` or `Origin`.
    FORBIDDEN = "forbidden", "Not allowed";
    /// 403: the `Host` is not a name of this server.
    HOST_NOT_ALLOWED = "host_not_allowed", "The host is not a name of this server";
    /// 403: the `Origin` is not the server's own.
    ORIGIN_NOT_ALLOWED = "origin_not_allowed", "The request comes from another site";
    /// 404: there is no such thing.
    NOT_FOUND = "not_found", "There is no such thing";
    /// 405: the path exists, the method does not.
    METHOD_NOT_ALLOWED = "method_not_allowed", "The path has no such method";
    /// 409: the id was used with another body.
    ID_REUSED = "id_reused", "The id was used with another body";
    /// 409: the key is held by a task that is not final.
    KEY_TAKEN = "key_taken", "The key is held by another task";
    /// 409: the task is over.
    TASK_FINAL = "task_final", "The task is over";
    /// 409: the task is not over.
    TASK_NOT_FINAL = "task_not_final", "The task is not over";
    /// 409: an attempt of the task is running.
    TASK_RUNNING = "task_running", "The task is running";
    /// 409: the task has had an attempt.
    TASK_STARTED = "task_started", "The task has had an attempt";
    /// 409: the thing is in a state that does not allow it.
    WRONG_STATE = "wrong_state", "Its state does not allow it";
    /// 409: something else names it.
    IN_USE = "in_use", "Something else uses it";
    /// 409: it was changed meanwhile.
    VERSION_CONFLICT = "version_conflict", "It was changed meanwhile";
    /// 413: too large.
    TOO_LARGE = "too_large", "It is too large";
    /// 415: the content type is not one that is read here.
    WRONG_TYPE = "wrong_type", "The content type is not read here";
    /// 422: understood but wrong.
    INVALID = "invalid", "A field is wrong";
    /// 422: the document has a field that is not known.
    UNKNOWN_FIELD = "unknown_field", "A field is not known";
    /// 422: a payload is nested too deeply.
    TOO_DEEP = "too_deep", "It is nested too deeply";
    /// 422: a payload has a number that other programs cannot read.
    BAD_NUMBER = "bad_number", "A number is out of range";
    /// 422: a payload has a character that other programs cannot read.
    BAD_CHARACTER = "bad_character", "A character is not allowed";
    /// 429: too many requests.
    LIMITED = "limited", "Too many requests";
    /// 500: a fault of the server.
    INTERNAL = "internal", "The server is at fault";
    /// 503: busy; try again.
    BUSY = "busy", "The server is busy";
    /// 503: shutting down.
    SHUTTING_DOWN = "shutting_down", "The server is shutting down";
    /// 503: no node owns the shard at the moment.
    NO_OWNER = "no_owner", "No node owns the shard at the moment";
    /// 507: the disk is full.
    DISK_FULL = "disk_full", "The disk is full";
}

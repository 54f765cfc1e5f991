//! When next? Cron dialects, intervals, calendars and daylight saving, as pure functions.

//! Every word the console says, in English and Chinese, in one table.
//!
//! The words for states, queues and the rest are those of the documentation; in Chinese each
//! stands beside the field's usual term.

macro_rules! texts {
    ($($name:ident: $en:literal, $zh:literal;)*) => {
        /// What the console says, in one language.
        pub(crate) struct Text {
            /// The language's tag.
            pub(crate) lang: &'static str,
            $(pub(crate) $name: &'static str,)*
        }

        /// English.
        pub(crate) static ENGLISH: Text = Text { lang: "en", $($name: $en,)* };
        /// Simplified Chinese.
        pub(crate) static CHINESE: Text = Text { lang: "zh", $($name: $zh,)* };

        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($name), $en, $zh),)*];
    };
}

texts! {
    overview: "Overview", "概览";
    wheel: "Wheel", "时间轮";
    tasks: "Tasks", "任务";
    schedules: "Schedules", "调度";
    calendars: "Calendars", "日历";
    queues: "Queues", "队列";
    nodes: "Nodes", "节点";
    analysis: "Analysis", "分析";
    dead_letters: "Dead letters", "死信";
    skip_to_content: "Skip to content", "跳到正文";
    other_language: "中文", "English";
    sign_out: "Sign out", "退出";
    live: "Live", "实时";

    scheduled: "scheduled", "已计划";
    ready: "ready", "就绪";
    running: "running", "运行中";
    succeeded: "succeeded", "成功";
    failed: "failed", "失败";
    cancelled: "cancelled", "已取消";
    expired: "expired", "已过期";
    skipped: "skipped", "已跳过";
    timed_out: "timed out", "超时";
    lost: "lost", "丢失";
    released: "released", "已归还";
    cancelling: "being cancelled", "正在取消";

    last_hour: "Last hour", "最近一小时";
    throughput: "Attempts a minute", "每分钟执行次数";
    lateness_p99: "Lateness, 99th percentile", "延迟（p99）";
    started: "Started", "开始";
    lateness: "Lateness", "延迟";
    duration: "Duration", "耗时";
    success_rate: "Success rate", "成功率";
    peak: "peak", "峰值";
    latest_failures: "Latest failures", "最近的失败";
    nothing_failed: "Nothing has failed.", "没有失败的任务。";
    this_node: "This node", "本节点";
    store: "Store", "存储";
    resident: "In the wheel", "在时间轮中";
    backlog: "Writes waiting", "待写入";
    attempts_running: "Attempts running", "正在执行";
    up_since: "Up since", "启动于";
    takes_work: "takes work", "正常接收";
    takes_no_work: "takes no work", "不接收";

    state: "State", "状态";
    any_state: "any state", "全部状态";
    queue: "Queue", "队列";
    any_queue: "any queue", "全部队列";
    kind: "Kind", "类型";
    key: "Key", "键";
    id_or_key: "Id or key", "编号或键";
    schedule: "Schedule", "调度";
    due: "Due", "到期";
    created: "Created", "创建";
    attempts: "Attempts", "执行记录";
    search: "Search", "查找";
    older: "Older", "更早";
    newest: "Newest", "最新";
    no_tasks: "No tasks match.", "没有符合条件的任务。";
    no_tasks_yet: "No tasks yet. Create one with", "还没有任务。可以这样创建：";
    cut_short: "The page is short: the filter matched few of the rows looked at. Older ones may match.", "本页未满：已查看的行中符合条件的较少，更早的可能还有。";
    cancel_matching: "Cancel all matching", "取消全部符合的";
    retry_matching: "Retry all matching", "重试全部符合的";
    confirm: "Confirm", "确认";
    back: "Back", "返回";
    about_to_cancel: "Tasks to be cancelled", "将取消的任务数";
    about_to_retry: "Tasks to be tried again", "将重试的任务数";
    or_more: "or more; one request changes a bounded number", "或更多；一次请求处理的数量有上限";
    changed: "Changed", "已处理";
    refused: "Refused", "被拒绝";
    more_remain: "There may be more. Do it again to go on.", "可能还有剩余，可再次执行。";

    cancel: "Cancel", "取消";
    run_now: "Run now", "立即执行";
    retry: "Retry", "重试";
    time_line: "Time line", "时间线";
    target: "Target", "目标";
    payload: "Payload", "载荷";
    result: "Result", "结果";
    progress: "Progress", "进度";
    tags: "Tags", "标签";
    priority: "Priority", "优先级";
    timeout: "Timeout", "超时时间";
    expires: "Expires", "过期时间";
    retry_policy: "Retry policy", "重试策略";
    concurrency_key: "Concurrency key", "并发键";
    at_most_once: "At most once", "最多一次";
    reason: "Reason", "原因";
    outcome: "Outcome", "结局";
    node: "Node", "节点";
    worker: "Worker", "工作者";
    error: "Error", "错误";
    output: "Output", "输出";
    no_output: "Nothing was printed.", "没有输出。";
    no_attempts: "Not attempted yet.", "尚未执行。";
    whole_output: "Whole output", "完整输出";
    logical_time: "Logical time", "计划时间";
    origin: "Origin", "来源";
    version: "Version", "版本";
    waits: "waited", "等待";

    rule: "Rule", "规则";
    zone: "Time zone", "时区";
    next: "Next", "下次";
    why: "Why", "说明";
    last: "Last run", "上次";
    paused: "paused", "已暂停";
    active: "active", "启用";
    overdue: "overdue", "逾期";
    pause: "Pause", "暂停";
    resume: "Resume", "恢复";
    trigger: "Trigger", "触发";
    delete: "Delete", "删除";
    next_runs: "Next runs", "后续执行";
    last_runs: "Last runs", "历史执行";
    document: "Document", "定义";
    never_again: "It does not run again.", "不会再执行。";
    no_schedules: "No schedules yet.", "还没有调度。";
    none_ran: "It has not run yet.", "尚未执行过。";
    misfire: "Misfire", "错过处理";
    overlap: "Overlap", "重叠处理";
    runs: "Runs", "执行次数";
    normal: "normal", "正常";
    week_ahead: "The week ahead", "未来一周";
    left_out: "left out", "排除";
    left_out_days: "Left out", "排除日历";

    at_a_rate: "every {}", "每隔 {}";
    at_a_delay: "{} after each run", "每次结束后 {}";
    each_day: "every day", "每天";
    each_week: "every week", "每周";
    each_month: "every month", "每月";
    each_quarter: "every quarter", "每季度";
    each_year: "every year", "每年";
    every_days: "every {} days", "每 {} 天";
    every_weeks: "every {} weeks", "每 {} 周";
    every_months: "every {} months", "每 {} 个月";
    every_quarters: "every {} quarters", "每 {} 个季度";
    every_years: "every {} years", "每 {} 年";
    on_day: "on day {}", "{} 日";
    on_weekday: "on {}", "的{}";
    on_last_business_day: "on its last business day", "最后一个工作日";
    or_the_last_day: "(or the month's last)", "（无此日则取月末）";
    or_not_at_all: "(only where there is one)", "（无此日则跳过）";
    at_time: "at {}", "于 {}";
    monday: "Monday", "周一";
    tuesday: "Tuesday", "周二";
    wednesday: "Wednesday", "周三";
    thursday: "Thursday", "周四";
    friday: "Friday", "周五";
    saturday: "Saturday", "周六";
    sunday: "Sunday", "周日";

    calendar: "Calendar", "日历";
    no_calendars: "No calendars yet.", "还没有日历。";
    days_given: "Given", "内容";
    next_days: "Next days left out", "接下来排除的日期";
    no_days: "It leaves no day out any more.", "之后不再排除任何日期。";
    day: "Day", "日期";
    dates: "dates", "日期";
    ranges: "ranges", "区间";
    ics_events: "events", "日历事件";
    used_by: "Named by", "引用者";
    changed_at: "Changed", "修改于";

    concurrency: "Concurrency", "并发数";
    rate: "Rate", "速率";
    per_key: "Per key", "每键并发";
    partitions: "Partitions", "分区";
    no_limit: "no limit", "不限";
    save: "Save", "保存";
    no_queues: "No queues yet.", "还没有队列。";
    starts: "starts", "次";
    per: "per", "每";

    address: "Address", "地址";
    shards: "Shards", "分片";
    epoch: "Epoch", "纪元";
    last_seen: "Last seen", "最近出现";
    workers: "Workers", "工作者";
    kinds: "Kinds", "类型";
    completed: "Completed", "已完成";
    no_workers: "No worker has called this node.", "还没有工作者连接本节点。";
    who_holds: "Who holds which shard", "分片归属";
    nobody: "nobody", "无";

    level: "Level", "层";
    slots: "Slots", "槽";
    slot_span: "A slot spans", "每槽跨度";
    holds: "Holds", "持有";
    cascades: "Moved down", "降级次数";
    window_until: "Window until", "窗口至";
    wheel_empty: "The wheel is empty. Tasks come into it as the window reaches them.", "时间轮为空。任务进入窗口后才会装入。";
    wheel_how: "Each ring is a level, the finest inside. A segment is a slot that holds tasks, the stronger its colour the more; the hand shows now.", "每个圆环是一层，最内层最精细。色块表示有任务的槽，颜色越浓任务越多；指针表示当前时刻。";
    in_store: "What is farther away waits in the store.", "更远的任务保存在存储中。";

    slowest: "Slowest", "最慢";
    most_failing: "Most failing", "失败最多";
    busiest: "Busiest", "最忙";
    nothing_ran: "Nothing ran in this time.", "这段时间没有执行。";
    hours: "h", "小时";
    days: "d", "天";

    token: "Token", "令牌";
    sign_in: "Sign in", "登录";
    token_where: "The token is in the file `token` of the server's data folder.", "令牌在服务器数据目录的 token 文件中。";
    wrong_token: "That is not the token.", "令牌不正确。";
    went_wrong: "That did not work", "操作未成功";
    expected: "Expected", "应为";
    done: "Done.", "已完成。";
    ago: "ago", "前";
    from_now: "from now", "后";
    now: "now", "现在";
}

impl Text {
    /// The days of the week from Monday on.
    pub(crate) fn weekdays(&self) -> [&'static str; 7] {
        [
            self.monday,
            self.tuesday,
            self.wednesday,
            self.thursday,
            self.friday,
            self.saturday,
            self.sunday,
        ]
    }

    /// A state, outcome or other word of a document; itself when there is no other word for it.
    pub(crate) fn word<'a>(&self, word: &'a str) -> &'a str {
        match word {
            "scheduled" => self.scheduled,
            "ready" => self.ready,
            "running" => self.running,
            "succeeded" => self.succeeded,
            "failed" => self.failed,
            "cancelled" => self.cancelled,
            "expired" => self.expired,
            "skipped" => self.skipped,
            "timed_out" => self.timed_out,
            "lost" => self.lost,
            "released" => self.released,
            "normal" => self.normal,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_there_in_both_languages() {
        for (name, en, zh) in ALL {
            assert!(!en.is_empty() && !zh.is_empty(), "{name}");
            let han = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            if *name != "other_language" {
                assert!(han(zh) && !han(en), "{name}");
            }
        }
    }
}

//! A schedule's rule in words.
//!
//! A cron expression stands for itself: those who wrote it read it, and the next runs beside it say
//! what it means.

use maud::{Markup, html};
use tourbillon_wire::{CalendarRule, MonthEnd, On, Schedule};

use super::text::Text;

/// The rule as it stands on a page.
pub(crate) fn rule(t: &Text, s: &Schedule) -> Markup {
    html! {
        @if let Some(cron) = &s.cron {
            code { (cron) } " " span.muted { (super::schedules::word(&s.dialect.unwrap_or_default())) }
        }
        @if let Some(every) = s.every { (fill(t.at_a_rate, &every.to_string())) }
        @if let Some(after) = s.after { (fill(t.at_a_delay, &after.to_string())) }
        @if let Some(calendar) = &s.calendar { (calendar_rule(t, calendar)) }
    }
}

/// A calendar rule: `every 2 weeks on Monday at 09:00`.
fn calendar_rule(t: &Text, rule: &CalendarRule) -> String {
    let (count, unit) = period(&rule.every);
    let (once, many) = match unit {
        "day" => (t.each_day, t.every_days),
        "week" => (t.each_week, t.every_weeks),
        "month" => (t.each_month, t.every_months),
        "quarter" => (t.each_quarter, t.every_quarters),
        _ => (t.each_year, t.every_years),
    };
    let mut words = vec![if count == 1 { once.to_owned() } else { fill(many, &count.to_string()) }];
    match &rule.on {
        Some(On::Day(day)) if unit == "week" => {
            let index = usize::try_from(day - 1).unwrap_or(0).min(6);
            words.push(fill(t.on_weekday, t.weekdays()[index]));
        }
        Some(On::Day(day)) => {
            words.push(fill(t.on_day, &day.to_string()));
            // Only such a day may be one that a month lacks.
            if *day > 28 {
                let skip = rule.month_end == Some(MonthEnd::Skip);
                words.push(if skip { t.or_not_at_all } else { t.or_the_last_day }.to_owned());
            }
        }
        Some(On::Name(_)) => words.push(t.on_last_business_day.to_owned()),
        None => {}
    }
    words.push(fill(t.at_time, rule.at.as_deref().unwrap_or("00:00")));
    words.join(" ")
}

/// How many of which unit, of a period that has been judged: `2 weeks`, `month`.
fn period(every: &str) -> (u32, &str) {
    let every = every.trim();
    let digits = every.bytes().take_while(u8::is_ascii_digit).count();
    let unit = every[digits..].trim();
    (every[..digits].parse().unwrap_or(1), unit.strip_suffix('s').unwrap_or(unit))
}

fn fill(pattern: &str, with: &str) -> String {
    pattern.replace("{}", with)
}

#[cfg(test)]
mod tests {
    use super::super::text::{CHINESE, ENGLISH};
    use super::*;

    #[test]
    fn calendar_rules_in_words() {
        let rule = |every: &str, on: Option<On>, at: &str, month_end| CalendarRule {
            every: every.into(),
            on,
            at: Some(at.into()),
            month_end: Some(month_end),
        };
        let last = On::Name("last_business_day".into());
        for (rule, english, chinese) in [
            (rule("day", None, "02:00", MonthEnd::Clamp), "every day at 02:00", "每天 于 02:00"),
            (
                rule("10 days", None, "06:00:30", MonthEnd::Clamp),
                "every 10 days at 06:00:30",
                "每 10 天 于 06:00:30",
            ),
            (
                rule("2 weeks", Some(On::Day(1)), "09:00", MonthEnd::Clamp),
                "every 2 weeks on Monday at 09:00",
                "每 2 周 的周一 于 09:00",
            ),
            (
                rule("1 month", Some(On::Day(31)), "02:00", MonthEnd::Clamp),
                "every month on day 31 (or the month's last) at 02:00",
                "每月 31 日 （无此日则取月末） 于 02:00",
            ),
            (
                rule("3 months", Some(On::Day(31)), "02:00", MonthEnd::Skip),
                "every 3 months on day 31 (only where there is one) at 02:00",
                "每 3 个月 31 日 （无此日则跳过） 于 02:00",
            ),
            (
                rule("1 quarter", Some(last), "18:30", MonthEnd::Clamp),
                "every quarter on its last business day at 18:30",
                "每季度 最后一个工作日 于 18:30",
            ),
        ] {
            assert_eq!(calendar_rule(&ENGLISH, &rule), english);
            assert_eq!(calendar_rule(&CHINESE, &rule), chinese);
        }
    }
}

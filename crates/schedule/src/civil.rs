//! Days and civil dates of the proleptic Gregorian calendar, as plain arithmetic.
//!
//! A civil time is an `i64` of seconds, counted as if its zone were UTC; a day is an `i64`
//! counted from 1970-01-01. Nothing here knows a zone. The algorithms are Howard Hinnant's
//! `days_from_civil` and `civil_from_days` ("chrono-compatible low-level date algorithms"), total
//! for every day that a microsecond instant can name.

/// Seconds in a civil day.
pub(crate) const DAY_S: i64 = 86_400;

/// The day of a civil date; `month` 1 to 12, `day` 1 to 31.
pub(crate) fn day_of(year: i64, month: u32, day: u32) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month (1 to 12) and day of month (1 to 31) of a day.
pub(crate) fn date_of(day: i64) -> (i64, u32, u32) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month =
        if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_month)
}

/// Weekday of a day, Sunday being 0.
pub(crate) fn weekday_of(day: i64) -> u32 {
    (day + 4).rem_euclid(7) as u32
}

/// Whether a year has a 29 February.
pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days in a month, `month` being 1 to 12.
pub(crate) fn days_in(year: i64, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_a_cycle_round_trips_and_agrees_with_jiff() {
        let mut expected = jiff::civil::date(1900, 1, 1);
        for day in day_of(1900, 1, 1)..day_of(2301, 1, 1) {
            let (year, month, dom) = date_of(day);
            assert_eq!(
                (year, month, dom),
                (i64::from(expected.year()), expected.month() as u32, expected.day() as u32)
            );
            assert_eq!(day_of(year, month, dom), day);
            assert_eq!(weekday_of(day), expected.weekday().to_sunday_zero_offset() as u32);
            assert!(dom <= days_in(year, month));
            expected = expected.tomorrow().unwrap();
        }
    }
}

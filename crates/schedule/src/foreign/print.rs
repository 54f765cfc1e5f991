//! Sets of numbers as the text of a cron field.
//!
//! What always holds: the text reads back as the same set, and begins with `*` only when it is the
//! whole of the field, since that is what makes a rule run by elapsed time.

/// The numbers of a set from `low` to `high`; empty sets are the caller's to refuse.
pub(super) fn field(set: u64, low: i64, high: i64) -> String {
    let members: Vec<i64> = (low..=high).filter(|n| set >> n & 1 == 1).collect();
    if members.len() as i64 == high - low + 1 {
        return "*".to_owned();
    }
    if let Some(steps) = steps(&members, high) {
        return steps;
    }
    runs(&members, |n| n.to_string())
}

/// `first/step`, when the members go on like that to the end of the field.
fn steps(members: &[i64], high: i64) -> Option<String> {
    let [first, second, .., last] = members else { return None };
    let step = second - first;
    let even = members.windows(2).all(|pair| pair[1] - pair[0] == step);
    (step > 1 && even && last + step > high).then(|| format!("{first}/{step}"))
}

/// A list in which three and more in a row are a range.
pub(super) fn runs(members: &[i64], name: impl Fn(i64) -> String) -> String {
    let mut items = Vec::new();
    let mut rest = members;
    while let Some(first) = rest.first() {
        let len = rest.iter().zip(*first..).take_while(|(a, b)| **a == *b).count();
        let last = rest[len - 1];
        match len {
            1 => items.push(name(*first)),
            2 => items.extend([name(*first), name(last)]),
            _ => items.push(format!("{}-{}", name(*first), name(last))),
        }
        rest = &rest[len..];
    }
    items.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CronExpr, Dialect};

    #[test]
    fn sets_as_text() {
        let set = |members: &[i64]| members.iter().fold(0, |set, n| set | 1 << n);
        assert_eq!(field(set(&[0, 15, 30, 45]), 0, 59), "0/15");
        assert_eq!(field(set(&[5, 6, 7, 9]), 0, 59), "5-7,9");
        assert_eq!(field(set(&[5, 6]), 0, 59), "5,6");
        assert_eq!(field(set(&[9, 11, 13]), 0, 23), "9,11,13");
        assert_eq!(field(u64::MAX, 0, 59), "*");
        assert_eq!(field(0xffff_fffe, 1, 31), "*");
    }

    #[test]
    fn every_set_reads_back() {
        let mut set = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..2_000 {
            set = set.rotate_left(7).wrapping_mul(0x94d0_49bb_1331_11eb);
            let minutes = set & set.rotate_left(21) & ((1 << 60) - 1) | 1 << (set % 60);
            let text = format!("0 {} 0 * * *", field(minutes, 0, 59));
            let read = CronExpr::parse(Dialect::Spring, &text, "").unwrap();
            let crate::cron::Form::Fields(fields) = read.form() else { panic!("{text}") };
            assert_eq!(fields.minutes, minutes, "{text}");
        }
    }
}

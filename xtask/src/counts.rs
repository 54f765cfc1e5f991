//! How many tests passed and failed, read from the test runners' own output.
//!
//! Understands cargo-nextest's `Summary` line and the `test result:` lines of cargo test, each only in
//! a run of its own: nextest shows the output of a failed test, and that holds a `test result:` line
//! about the same test. A test that timed out or could not be started has failed. Tests that were left
//! out are counted too, so that they can be complained about.

/// Whose output is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Runner {
    /// cargo-nextest.
    Nextest,
    /// cargo test, which shows what each test program prints.
    CargoTest,
}

/// Sums over all runners of one chore, and the lines they were read from.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tests that passed, also on a second try.
    pub(crate) passed: u64,
    /// Tests that failed, timed out or could not be started.
    pub(crate) failed: u64,
    /// Tests that were ignored or filtered out.
    pub(crate) left_out: u64,
    /// The runners' own summary lines, without those about no test at all.
    pub(crate) summaries: Vec<String>,
}

impl Counts {
    /// Takes in one line of a runner's output; lines that are no summary change nothing.
    pub(crate) fn read(&mut self, runner: Runner, line: &str) {
        let plain = without_colours(line);
        let trimmed = plain.trim();
        let items = match runner {
            Runner::Nextest => nextest(trimmed),
            Runner::CargoTest => libtest(trimmed),
        };
        let Some(items) = items else { return };
        let before = (self.passed, self.failed, self.left_out);
        for (count, word) in items {
            match word {
                "passed" => self.passed += count,
                "failed" | "timed out" | "exec failed" => self.failed += count,
                "skipped" | "ignored" | "filtered out" => self.left_out += count,
                _ => {}
            }
        }
        if before != (self.passed, self.failed, self.left_out) {
            self.summaries.push(trimmed.to_owned());
        }
    }

    /// Adds another chore's counts.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.left_out += other.left_out;
        self.summaries.extend(other.summaries);
    }

    /// Prints the runners' summaries and, last, the sum.
    pub(crate) fn print(&self) {
        for line in &self.summaries {
            println!("{line}");
        }
        println!("{} passed, {} failed", self.passed, self.failed);
    }
}

/// `Summary [   1.234s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 0 skipped`
fn nextest(line: &str) -> Option<Vec<(u64, &str)>> {
    let rest = line.strip_prefix("Summary [")?;
    let (_, items) = rest.split_once(" run: ")?;
    Some(items_of(items, ','))
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s`
fn libtest(line: &str) -> Option<Vec<(u64, &str)>> {
    let rest = line.strip_prefix("test result: ")?;
    let (_, items) = rest.split_once(". ")?;
    Some(items_of(items, ';'))
}

/// Splits `3 passed (1 slow, 1 leaky), 1 failed`; what stands in parentheses is a part of what stands
/// before it and is dropped.
fn items_of(text: &str, separator: char) -> Vec<(u64, &str)> {
    let mut items = Vec::new();
    let mut depth = 0_u32;
    let mut start = 0;
    let ends = text.char_indices().chain(std::iter::once((text.len(), separator)));
    for (index, letter) in ends {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if letter == separator && (depth == 0 || index == text.len()) => {
                let item = text[start..index].trim();
                let item = item.split_once(" (").map_or(item, |(item, _)| item);
                if let Some((number, word)) = item.split_once(' ')
                    && let Ok(count) = number.parse()
                {
                    items.push((count, word));
                }
                start = (index + letter.len_utf8()).min(text.len());
            }
            _ => {}
        }
    }
    items
}

/// The line without terminal colour sequences.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(letter);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::Runner::{CargoTest, Nextest};
    use super::*;

    fn counted(runner: Runner, lines: &[&str]) -> (u64, u64, u64) {
        let mut counts = Counts::default();
        lines.iter().for_each(|line| counts.read(runner, line));
        (counts.passed, counts.failed, counts.left_out)
    }

    #[test]
    fn every_mixture_is_counted_by_both_runners_alike() {
        for passed in 0..4 {
            for failed in 0..4 {
                for left_out in 0..4 {
                    let nextest = format!(
                        "     Summary [   0.010s] {} tests run: {passed} passed (1 slow, 1 leaky), {failed} failed, {left_out} skipped",
                        passed + failed
                    );
                    let libtest = format!(
                        "test result: FAILED. {passed} passed; {failed} failed; {left_out} ignored; 0 measured; 0 filtered out; finished in 0.00s"
                    );
                    let expected = (passed, failed, left_out);
                    assert_eq!(counted(Nextest, &[&nextest]), expected, "{nextest}");
                    assert_eq!(counted(CargoTest, &[&libtest]), expected, "{libtest}");
                    let doubled = (2 * passed, 2 * failed, 2 * left_out);
                    assert_eq!(counted(CargoTest, &[&libtest, &libtest]), doubled);
                }
            }
        }
    }

    #[test]
    fn a_run_that_was_cut_short_and_its_odd_ends() {
        let line = "Summary [  61.002s] 4/9 tests run: 1 passed (1 flaky), 1 failed (1 due to being leaky), 1 timed out, 1 exec failed, 5 skipped";
        assert_eq!(counted(Nextest, &[line]), (1, 3, 5));
    }

    // Under nextest one failed test was counted twice: once in the summary, once in the `test result:`
    // line of its own program, which nextest shows, indented, with the rest of its output.
    #[test]
    fn a_failed_test_counts_once() {
        let lines = [
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.14s",
            "     Summary [   0.157s] 5 tests run: 4 passed, 1 failed, 0 skipped",
        ];
        assert_eq!(counted(Nextest, &lines), (4, 1, 0));
    }

    #[test]
    fn colours_do_not_hide_a_summary() {
        let line = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m2\u{1b}[0m tests run: \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m skipped";
        assert_eq!(counted(Nextest, &[line]), (2, 0, 0));
    }

    #[test]
    fn other_lines_and_empty_results_leave_no_trace() {
        let mut counts = Counts::default();
        for line in [
            "",
            "Summary",
            "Summary [ of the report",
            "test result: pending",
            "7 passed, 2 failed",
            "        PASS [   0.005s] xtask counts::tests::x",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "\u{1b}",
            "Summary [ ] \u{e9} run: (",
        ] {
            counts.read(Nextest, line);
            counts.read(CargoTest, line);
        }
        assert_eq!(counts, Counts::default());
    }
}

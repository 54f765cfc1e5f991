//! Rows of results: JSON lines as they come, or a table at the end.

use std::io::Write;

use crate::comparison;

/// Gathers measurements under one bench name.
pub(crate) struct Report {
    bench: &'static str,
    json: bool,
    rows: Vec<Row>,
}

/// One metric of one subject.
pub(crate) struct Row {
    pub(crate) subject: String,
    pub(crate) n: u64,
    pub(crate) metric: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) rounds: usize,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Report {
    pub(crate) fn new(bench: &'static str, json: bool) -> Report {
        Report { bench, json, rows: Vec::new() }
    }

    /// Adds a metric of the product from one or more rounds; the median is the value.
    pub(crate) fn add(&mut self, n: u64, metric: &'static str, unit: &'static str, rounds: &[f64]) {
        if let Some(median) = self.add_of("tourbillon", n, metric, unit, rounds)
            && !self.json
        {
            eprintln!("  {metric} = {} {unit}", rounded(median));
        }
    }

    /// The same for one of several subjects. Gives the median, or nothing without rounds: what was
    /// not measured is absent.
    pub(crate) fn add_of(
        &mut self,
        subject: &str,
        n: u64,
        metric: &'static str,
        unit: &'static str,
        rounds: &[f64],
    ) -> Option<f64> {
        let mut sorted: Vec<f64> = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let median = sorted[sorted.len() / 2];
        let row = Row {
            subject: subject.to_owned(),
            n,
            metric,
            unit,
            rounds: rounds.len(),
            median,
            min,
            max,
        };
        if self.json {
            let line = serde_json::json!({
                "bench": self.bench, "subject": row.subject, "n": row.n, "metric": row.metric,
                "value": rounded(row.median), "unit": row.unit, "rounds": row.rounds,
                "min": rounded(row.min), "max": rounded(row.max),
            });
            println!("{line}");
            let _ = std::io::stdout().flush();
        }
        self.rows.push(row);
        Some(median)
    }

    /// Prints the table, unless JSON was asked for.
    pub(crate) fn finish(&self) {
        if self.json {
            return;
        }
        println!("{:<28} {:>12} {:>14} {:>10} {:>30}", "metric", "n", "value", "unit", "min..max");
        for row in &self.rows {
            let spread = format!("{}..{}", rounded(row.min), rounded(row.max));
            println!(
                "{:<28} {:>12} {:>14} {:>10} {:>30}",
                row.metric,
                row.n,
                rounded(row.median),
                row.unit,
                spread
            );
        }
    }

    /// Prints tables of subjects side by side, with their ratios to `base`, unless JSON was asked for.
    pub(crate) fn finish_against(&self, base: &str) {
        if !self.json {
            print!("{}", comparison::tables(&self.rows, base));
        }
    }
}

/// As many digits as a figure deserves.
pub(crate) fn rounded(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { (value * 1000.0).round() / 1000.0 }
}

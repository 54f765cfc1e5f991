//! Rows of results: JSON lines, or a table at the end.

use std::io::Write;

/// Gathers measurements under one bench name.
pub(crate) struct Report {
    bench: &'static str,
    json: bool,
    rows: Vec<Row>,
}

struct Row {
    subject: String,
    n: u64,
    metric: &'static str,
    unit: &'static str,
    rounds: usize,
    median: f64,
    min: f64,
    max: f64,
}

impl Report {
    pub(crate) fn new(bench: &'static str, json: bool) -> Report {
        Report { bench, json, rows: Vec::new() }
    }

    /// Adds a metric from one or more rounds; the median is the value.
    pub(crate) fn add(&mut self, n: u64, metric: &'static str, unit: &'static str, rounds: &[f64]) {
        let mut sorted: Vec<f64> = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else { return };
        let median = sorted[sorted.len() / 2];
        let row = Row {
            subject: "tourbillon".to_owned(),
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
        } else {
            eprintln!("  {metric} = {} {unit}", rounded(median));
        }
        self.rows.push(row);
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
}

fn rounded(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { (value * 1000.0).round() / 1000.0 }
}

//! Plots of the wheel bench: JSON lines in, one SVG a metric out.
//!
//! Both axes are logarithmic, one line a subject. The same lines give the same files, byte for byte.
//! A file stands alone and is readable on light and on dark pages: it has a ground and colours for
//! either. Subjects are told apart by colour, dash and a label at the line's end, so by any eye; the
//! project's own main structure is drawn heaviest and last. What was not measured is not drawn, and
//! nothing is drawn between sizes but straight lines.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::cargo;

/// Where lines are read by default, and where plots go.
const SOURCE: &str = "docs/plots/wheel.jsonl";
const FOLDER: &str = "docs/plots";

/// The subject to look at first.
const EMPHASISED: &str = "HierarchicalWheel";

/// One plot: metric, title, what a value is.
const PLOTS: &[(&str, &str, &str)] = &[
    ("insert_ns", "Inserting a timer", "Time of one, n into an empty structure"),
    ("cancel_ns", "Cancelling a timer", "Time of one, all n in random order"),
    ("fire_ns", "Firing within an hour", "Time of one, all steps of 1 ms included"),
    ("mix_ns", "Churn", "Time to cancel one and insert one, n pending"),
    ("worst_advance_us", "The worst step", "The longest of 3.6 million steps of 1 ms"),
    ("bytes_per_entry", "Memory", "Bytes of one timer, n pending"),
    ("mass_expiry_ns", "All at once", "Time of one, n firing in one advance"),
];

/// One measurement, as the bench prints it; what else the line holds is of no interest here.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    bench: String,
    subject: String,
    n: u64,
    metric: String,
    value: f64,
}

/// Reads a file of JSON lines, by default [`SOURCE`], and writes the plots.
pub(crate) fn run(file: Option<&str>) -> Result<()> {
    let root = cargo::root();
    let file = file.map_or_else(|| root.join(SOURCE), |file| Path::new(file).to_path_buf());
    let text = fs::read_to_string(&file).with_context(|| {
        format!(
            "cannot read {}: `cargo run --release -p tourbillon-bench -- wheel --json` prints what it should hold",
            file.display()
        )
    })?;
    let rows = rows(&text).with_context(|| file.display().to_string())?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (metric, title, what) in PLOTS {
        let Some(plot) = Plot::of(&rows, metric) else {
            println!("plots: nothing was measured of {metric}");
            continue;
        };
        let name = format!("{}.svg", metric.replace('_', "-"));
        let path = folder.join(&name);
        fs::write(&path, plot.svg(title, what))
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("plots: {FOLDER}/{name}, {} subjects", plot.series.len());
    }
    Ok(())
}

/// The bench's measurements among the lines.
fn rows(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row: Row = serde_json::from_str(line)
            .with_context(|| format!("line {} is no measurement", index + 1))?;
        if row.bench == "wheel" {
            rows.push(row);
        }
    }
    ensure!(!rows.is_empty(), "there is no measurement of the bench `wheel`");
    Ok(rows)
}

// Measures of the drawing, in pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 470.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 420.0;
/// From label to label at the lines' ends.
const LABEL_STEP: f64 = 19.0;

/// A colour on a light ground, one on a dark ground, and a pattern of dashes. Neighbours differ in
/// hue and lightness, after Okabe and Ito and after Tol, and two of like hue in their dashes.
const STYLES: &[(&str, &str, &str)] = &[
    ("#c2410c", "#ff9248", ""),
    ("#0072b2", "#56b4e9", ""),
    ("#117733", "#4fc07a", "7 4"),
    ("#332288", "#a99af0", ""),
    ("#882255", "#e58bb4", "7 4"),
    ("#7a7a14", "#d8d05a", ""),
    ("#2a8c80", "#66d4c5", "2 4"),
    ("#aa4499", "#dd88cc", "2 4"),
    ("#5b6b7c", "#aab8c6", "7 4"),
    ("#8a6100", "#e0b04a", "9 3 2 3"),
];

/// One metric of all subjects.
struct Plot<'a> {
    x: Scale,
    y: Scale,
    unit: Unit,
    /// In order of first appearance, which is the bench's.
    series: Vec<Series<'a>>,
}

struct Series<'a> {
    subject: &'a str,
    /// Its place among the subjects of all plots: the same colour in each.
    style: usize,
    /// Size and value, by size.
    points: Vec<(f64, f64)>,
}

impl<'a> Plot<'a> {
    /// The plot of a metric, unless there is nothing to draw. A logarithm knows no zero: such values
    /// are left out.
    fn of(rows: &'a [Row], metric: &str) -> Option<Plot<'a>> {
        let mut series: Vec<Series> = Vec::new();
        for row in rows {
            let at = series.iter().position(|s| s.subject == row.subject).unwrap_or_else(|| {
                let style = series.len();
                series.push(Series { subject: &row.subject, style, points: Vec::new() });
                style
            });
            if row.metric == metric && row.n > 0 && row.value > 0.0 {
                series[at].points.push((row.n as f64, row.value));
            }
        }
        series.retain(|one| !one.points.is_empty());
        for one in &mut series {
            one.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let points = || series.iter().flat_map(|one| one.points.iter());
        let x = Scale::around(points().map(|p| p.0), LEFT, RIGHT)?;
        let y = Scale::around(points().map(|p| p.1), BOTTOM, TOP)?;
        Some(Plot { x, y, unit: Unit::of(metric), series })
    }

    fn svg(&self, title: &str, what: &str) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="ti de">"#
        );
        let _ = writeln!(out, r#"<title id="ti">{}</title>"#, escaped(title));
        let _ = writeln!(
            out,
            r#"<desc id="de">{}, by number of pending timers, both axes logarithmic, for {}.</desc>"#,
            escaped(what),
            escaped(&self.series.iter().map(|s| s.subject).collect::<Vec<_>>().join(", "))
        );
        self.style(&mut out);
        let _ = writeln!(out, r#"<rect class="bg" width="{WIDTH}" height="{HEIGHT}" rx="10"/>"#);
        let _ = writeln!(out, r#"<text class="t b" x="24" y="32">{}</text>"#, escaped(title));
        let _ = writeln!(
            out,
            r#"<text class="t" x="24" y="51">{}; less is better</text>"#,
            escaped(what)
        );
        self.axes(&mut out);
        self.lines(&mut out);
        out.push_str("</svg>\n");
        out
    }

    fn style(&self, out: &mut String) {
        out.push_str("<style>\n");
        out.push_str(
            ".t{font:13px system-ui,-apple-system,\"Segoe UI\",sans-serif;fill:#424a53}.b{font-size:16px;font-weight:600;fill:#1f2328}\n",
        );
        out.push_str(
            ".bg{fill:#fff}.g{stroke:#8c959f;stroke-opacity:.28}.a{stroke:#57606a}.e{text-anchor:end}.m{text-anchor:middle}\n",
        );
        out.push_str(
            ".l{fill:none;stroke-width:1.8;stroke-linejoin:round}.k{fill:none;stroke-width:1;stroke-opacity:.45}.h{stroke-width:4}.w{font-weight:700}\n",
        );
        let colours = |out: &mut String, dark: bool| {
            for style in self.series.iter().map(|one| one.style) {
                let (on_light, on_dark, _) = STYLES[style % STYLES.len()];
                let colour = if dark { on_dark } else { on_light };
                let _ = write!(out, ".s{style}{{stroke:{colour}}}.f{style}{{fill:{colour}}}");
            }
            out.push('\n');
        };
        colours(out, false);
        out.push_str(
            "@media (prefers-color-scheme:dark){.bg{fill:#0d1117}.t{fill:#b1bac4}.b{fill:#f0f6fc}.a{stroke:#8b949e}\n",
        );
        colours(out, true);
        out.push_str("}\n</style>\n");
    }

    fn axes(&self, out: &mut String) {
        for (value, text) in self.y.ticks().into_iter().map(|v| (v, self.unit.shown(v))) {
            let y = self.y.at(value);
            let _ = writeln!(out, r#"<path class="g" d="M{LEFT} {y:.1}H{RIGHT}"/>"#);
            let _ = writeln!(
                out,
                r#"<text class="t e" x="{:.1}" y="{:.1}">{text}</text>"#,
                LEFT - 8.0,
                y + 4.5
            );
        }
        for value in self.x.ticks() {
            let x = self.x.at(value);
            let _ = writeln!(out, r#"<path class="g" d="M{x:.1} {TOP}V{BOTTOM}"/>"#);
            let _ = writeln!(
                out,
                r#"<text class="t m" x="{x:.1}" y="{:.1}">{}</text>"#,
                BOTTOM + 20.0,
                counted(value)
            );
        }
        let _ = writeln!(out, r#"<path class="a" d="M{LEFT} {BOTTOM}H{RIGHT}"/>"#);
        let _ = writeln!(
            out,
            r#"<text class="t m" x="{:.1}" y="{:.1}">pending timers</text>"#,
            f64::midpoint(LEFT, RIGHT),
            BOTTOM + 40.0
        );
    }

    /// Lines and their labels, the emphasised one over the others.
    fn lines(&self, out: &mut String) {
        let ends: Vec<(f64, f64)> = self
            .series
            .iter()
            .filter_map(|one| one.points.last())
            .map(|(n, value)| (self.x.at(*n), self.y.at(*value)))
            .collect();
        let heights: Vec<f64> = ends.iter().map(|end| end.1).collect();
        let labels = spread(&heights, LABEL_STEP, TOP, BOTTOM);
        let mut drawn: Vec<_> = self.series.iter().zip(ends).zip(labels).collect();
        drawn.sort_by_key(|((one, _), _)| one.subject == EMPHASISED);
        for ((one, end), label) in drawn {
            self.line(out, one, end, label);
        }
    }

    fn line(&self, out: &mut String, one: &Series, (end_x, end_y): (f64, f64), label: f64) {
        let style = one.style;
        let dash = match STYLES[style % STYLES.len()].2 {
            "" => String::new(),
            dash => format!(r#" stroke-dasharray="{dash}""#),
        };
        let heavy = one.subject == EMPHASISED;
        let (thick, bold, radius) = if heavy { (" h", " w", 4.5) } else { ("", "", 2.8) };
        let mut path = String::new();
        for (n, value) in &one.points {
            let (x, y) = (self.x.at(*n), self.y.at(*value));
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
            let _ =
                writeln!(out, r#"<circle class="f{style}" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#);
        }
        let _ = writeln!(out, r#"<path class="l s{style}{thick}" d="{path}"{dash}/>"#);
        let _ = writeln!(
            out,
            r#"<path class="k s{style}" d="M{:.1} {end_y:.1}L{:.1} {label:.1}H{:.1}"/>"#,
            end_x + 5.0,
            RIGHT + 20.0,
            RIGHT + 26.0
        );
        let _ = writeln!(
            out,
            r#"<text class="t f{style}{bold}" x="{:.1}" y="{:.1}">{}</text>"#,
            RIGHT + 30.0,
            label + 4.5,
            escaped(one.subject)
        );
    }
}

/// A logarithmic axis from one rung of the ladder 1, 2, 5, 10, 20, 50 and so on to another.
#[derive(Clone, Copy, Debug)]
struct Scale {
    first: i32,
    last: i32,
    /// Pixels of the two ends.
    from: f64,
    to: f64,
}

/// The value of a rung; rung 0 is 1.
fn rung(step: i32) -> f64 {
    [1.0, 2.0, 5.0][step.rem_euclid(3) as usize] * 10_f64.powi(step.div_euclid(3))
}

impl Scale {
    /// The shortest axis that holds all values, and two rungs at least. Nothing without values; they
    /// are positive.
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Scale> {
        let (low, high) = values
            .map(|value| (value, value))
            .reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))?;
        // What was written as 0.3 is 0.3, whatever comes of multiplying.
        let slack = 1.0 + 1e-9;
        let near = |value: f64| 3 * value.log10().floor() as i32;
        let first = (near(low) - 3..=near(low) + 3).rfind(|s| rung(*s) <= low * slack)?;
        let last = (near(high)..=near(high) + 6).find(|s| rung(*s) * slack >= high)?;
        Some(Scale { first, last: last.max(first + 1), from, to })
    }

    fn at(&self, value: f64) -> f64 {
        let (low, high) = (rung(self.first).log10(), rung(self.last).log10());
        self.from + (value.log10() - low) / (high - low) * (self.to - self.from)
    }

    /// Powers of ten, and the rungs between them where there are few.
    fn ticks(&self) -> Vec<f64> {
        let tens = (self.first..=self.last).filter(|step| step.rem_euclid(3) == 0);
        let step = if tens.count() < 3 { 1 } else { 3 };
        (self.first..=self.last).filter(|s| s.rem_euclid(step) == 0).map(rung).collect()
    }
}

/// What values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Nanoseconds,
    Microseconds,
    Bytes,
}

impl Unit {
    fn of(metric: &str) -> Unit {
        if metric.ends_with("_us") {
            Unit::Microseconds
        } else if metric.ends_with("_ns") {
            Unit::Nanoseconds
        } else {
            Unit::Bytes
        }
    }

    /// A value in the unit that people use for its magnitude.
    fn shown(self, value: f64) -> String {
        let (mut value, names): (f64, &[&str]) = match self {
            Unit::Nanoseconds => (value, &["ns", "µs", "ms", "s"]),
            Unit::Microseconds => (value * 1e3, &["ns", "µs", "ms", "s"]),
            Unit::Bytes => (value, &["B", "kB", "MB", "GB"]),
        };
        let mut name = 0;
        while value >= 999.5 && name + 1 < names.len() {
            value /= 1e3;
            name += 1;
        }
        format!("{} {}", plain(value), names[name])
    }
}

/// A number of timers in short.
fn counted(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{} M", plain(v / 1e6)),
        v if v >= 1e3 => format!("{} k", plain(v / 1e3)),
        v => plain(v),
    }
}

/// Without the digits that come of dividing.
fn plain(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// Heights for labels, near to where they should be and `step` apart, within top and bottom while
/// there is room: a regression of `height - rank * step` that must not fall (pooling neighbours that
/// do).
fn spread(heights: &[f64], step: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|a, b| heights[*a].total_cmp(&heights[*b]));
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (rank, index) in order.iter().enumerate() {
        let mut pool = (heights[*index] - rank as f64 * step, 1);
        while let Some((sum, count)) = pools.last().copied()
            && sum / count as f64 > pool.0 / pool.1 as f64
        {
            pools.pop();
            pool = (pool.0 + sum, pool.1 + count);
        }
        pools.push(pool);
    }
    let last = (bottom - heights.len().saturating_sub(1) as f64 * step).max(top);
    let eased = pools.iter().flat_map(|(sum, count)| {
        std::iter::repeat_n((sum / *count as f64).clamp(top, last), *count)
    });
    let mut placed = vec![0.0; heights.len()];
    for ((rank, index), base) in order.iter().enumerate().zip(eased) {
        placed[*index] = base + rank as f64 * step;
    }
    placed
}

/// Text as it may stand in XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[f64]) -> Scale {
        Scale::around(values.iter().copied(), 100.0, 500.0).expect("an axis")
    }

    #[test]
    fn an_axis_ends_at_the_rungs_around_its_values() {
        for (values, low, high) in [
            (&[1_000.0, 10_000_000.0][..], 1_000.0, 10_000_000.0),
            (&[0.3, 7.0], 0.2, 10.0),
            (&[13.0, 499.0, 80.0], 10.0, 500.0),
            (&[501.0, 1e6 + 1.0], 500.0, 2e6),
            (&[0.05, 0.2], 0.05, 0.2),
            (&[20.0], 20.0, 50.0),
        ] {
            let scale = scale(values);
            assert_eq!((rung(scale.first), rung(scale.last)), (low, high), "{values:?}");
        }
        assert!(Scale::around(std::iter::empty(), 0.0, 1.0).is_none());
    }

    #[test]
    fn an_axis_runs_from_end_to_end_and_a_decade_is_as_long_as_the_next() {
        let scale = scale(&[10.0, 100_000.0]);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert!((scale.at(100_000.0) - 500.0).abs() < 1e-9);
        for decade in [10.0, 100.0, 1_000.0, 10_000.0] {
            let length = scale.at(decade * 10.0) - scale.at(decade);
            assert!((length - 100.0).abs() < 1e-9, "{decade}: {length}");
        }
    }

    #[test]
    fn ticks_are_tens_and_rungs_when_tens_are_few() {
        assert_eq!(scale(&[5.0, 3_000.0]).ticks(), [10.0, 100.0, 1_000.0]);
        assert_eq!(scale(&[30.0, 170.0]).ticks(), [20.0, 50.0, 100.0, 200.0]);
        let all: Vec<f64> = (3..=7).map(|power| 10_f64.powi(power)).collect();
        assert_eq!(scale(&[1e3, 1e7]).ticks(), all);
    }

    #[test]
    fn values_are_shown_in_the_unit_of_their_magnitude() {
        for (unit, value, shown) in [
            (Unit::Nanoseconds, 0.2, "0.2 ns"),
            (Unit::Nanoseconds, 500.0, "500 ns"),
            (Unit::Nanoseconds, 2e6, "2 ms"),
            (Unit::Microseconds, 0.5, "500 ns"),
            (Unit::Microseconds, 1e6, "1 s"),
            (Unit::Microseconds, 5e9, "5000 s"),
            (Unit::Bytes, 50.0, "50 B"),
            (Unit::Bytes, 1e3, "1 kB"),
        ] {
            assert_eq!(unit.shown(value), shown);
        }
        assert_eq!([1e3, 2e5, 1e7, 500.0].map(counted), ["1 k", "200 k", "10 M", "500"]);
        let units = ["fire_ns", "worst_advance_us", "bytes_per_entry"].map(Unit::of);
        assert_eq!(units, [Unit::Nanoseconds, Unit::Microseconds, Unit::Bytes]);
    }

    #[test]
    fn labels_keep_their_order_and_their_distance() {
        // Far apart, crowded, crowded at either end, equal.
        for heights in [
            &[300.0, 100.0, 200.0][..],
            &[200.0, 201.0, 202.0, 150.0, 199.0],
            &[1.0, 2.0, 3.0],
            &[398.0, 399.0, 400.0],
            &[250.0; 10],
            &[],
        ] {
            let placed = spread(heights, 19.0, 50.0, 400.0);
            for (a, at_a) in heights.iter().zip(&placed) {
                assert!((50.0 - 1e-9..=400.0 + 1e-9).contains(at_a), "{heights:?}: {placed:?}");
                for (b, at_b) in heights.iter().zip(&placed) {
                    let apart = a == b || (at_b - at_a) * (b - a).signum() >= 19.0 - 1e-9;
                    assert!(apart, "{heights:?}: {placed:?}");
                }
            }
        }
        assert_eq!(spread(&[300.0, 100.0, 200.0], 19.0, 50.0, 400.0), [300.0, 100.0, 200.0]);
        assert_eq!(spread(&[200.0, 200.0], 20.0, 50.0, 400.0), [190.0, 210.0]);
    }

    const LINES: &str = r#"
{"bench":"wheel","subject":"A<B","n":0,"metric":"idle_advance_ns","value":1.5,"unit":"ns","rounds":5,"min":1,"max":2}
{"bench":"service","subject":"tourbillon","n":9,"metric":"fire_ns","value":9}
{"bench":"wheel","subject":"HierarchicalWheel","n":100000,"metric":"fire_ns","value":20.5}
{"bench":"wheel","subject":"C","n":1000,"metric":"fire_ns","value":0}
{"bench":"wheel","subject":"HierarchicalWheel","n":1000,"metric":"fire_ns","value":30}
{"bench":"wheel","subject":"A<B","n":1000,"metric":"fire_ns","value":40}
"#;

    #[test]
    fn a_plot_has_every_measured_subject_by_size_and_is_always_the_same() {
        let rows = rows(LINES).expect("measurements");
        assert_eq!(rows.len(), 5);
        let plot = Plot::of(&rows, "fire_ns").expect("a plot");
        let series: Vec<_> =
            plot.series.iter().map(|s| (s.subject, s.style, &s.points[..])).collect();
        assert_eq!(
            series,
            [
                ("A<B", 0, &[(1_000.0, 40.0)][..]),
                (EMPHASISED, 1, &[(1_000.0, 30.0), (100_000.0, 20.5)][..]),
            ]
        );
        assert!(Plot::of(&rows, "idle_advance_ns").is_none(), "there is no size to draw it at");
        let svg = plot.svg("Firing", "time & more");
        assert_eq!(svg, plot.svg("Firing", "time & more"));
        assert!(svg.contains(">A&lt;B</text>") && svg.contains(">time &amp; more; less"), "{svg}");
        for tag in ["svg", "text", "style", "title", "desc"] {
            let opened =
                svg.matches(&format!("<{tag} ")).count() + svg.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn a_line_that_is_no_measurement_is_named() {
        let error = rows(r#"{"bench":"wheel"}"#).expect_err("a bad line");
        assert!(format!("{error:#}").contains("line 1"), "{error:#}");
        assert!(rows("").is_err());
    }
}

//! Small pictures as SVG: bars and a curve over time, the wheel, a week of hours, the shards.
//!
//! Pure functions from numbers to markup. Everything is styled by classes, for the content
//! policy allows no style attributes.

use std::f64::consts::TAU;

use maud::{Markup, html};
use tourbillon_wire::{SeriesPoint, WheelSnapshot};

use super::page::span;
use super::text::Text;

const HEIGHT: f64 = 100.0;

/// Attempts a step: the successful below, the others on top.
pub(crate) fn bars(points: &[SeriesPoint], label: &str) -> Markup {
    let most = points.iter().map(|p| p.succeeded + p.failed).max().unwrap_or(0).max(1) as f64;
    let width = points.len().max(1);
    html! {
        svg.chart viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
            line.floor x1="0" x2=(width) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            @for (x, p) in points.iter().enumerate() {
                @let good = p.succeeded as f64 / most * HEIGHT;
                @let bad = p.failed as f64 / most * HEIGHT;
                @if good > 0.0 { (bar("ok", x, HEIGHT - good, good)) }
                @if bad > 0.0 { (bar("bad", x, HEIGHT - good - bad, bad)) }
            }
        }
    }
}

fn bar(class: &str, x: usize, y: f64, height: f64) -> Markup {
    html! {
        rect class=(class) x=(format!("{:.2}", x as f64 + 0.1)) y=(format!("{y:.2}")) width="0.8" height=(format!("{height:.2}")) {}
    }
}

/// A value over time; steps without a value interrupt the curve.
pub(crate) fn curve(
    points: &[SeriesPoint],
    value: fn(&SeriesPoint) -> Option<f64>,
    label: &str,
) -> Markup {
    let most = points.iter().filter_map(value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let width = points.len().max(1);
    let mut path = String::new();
    let mut drawing = false;
    for (x, point) in points.iter().enumerate() {
        let Some(v) = value(point) else {
            drawing = false;
            continue;
        };
        let y = HEIGHT - v / most * (HEIGHT - 4.0) - 2.0;
        // A lone value is a short stroke, for a point alone would not be seen.
        let from = x as f64 + if drawing { 0.5 } else { 0.1 };
        path.push_str(&format!("{}{from:.2} {y:.2}", if drawing { 'L' } else { 'M' }));
        if !drawing {
            path.push_str(&format!("L{:.2} {y:.2}", x as f64 + 0.5));
        }
        drawing = true;
    }
    html! {
        svg.chart viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
            line.floor x1="0" x2=(width) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            path.curve d=(path) {}
        }
    }
}

/// Rings of slots, the finest level inside; the hand shows the current slot of the coarsest one
/// drawn.
pub(crate) fn wheel(w: &WheelSnapshot, t: &Text) -> Markup {
    const FIRST: f64 = 34.0;
    const STEP: f64 = 28.0;
    let size = 2.0 * (FIRST + STEP * w.levels.len().max(1) as f64 - 4.0);
    let middle = size / 2.0;
    let most = w.levels.iter().flat_map(|l| &l.occupied).map(|s| s.count).max().unwrap_or(1);
    html! {
        svg.wheel viewBox=(format!("0 0 {size:.0} {size:.0}")) role="img" aria-label=(t.wheel) {
            @for (index, level) in w.levels.iter().enumerate() {
                @let radius = FIRST + STEP * index as f64;
                @let slots = level.slots.max(1);
                circle.ring cx=(middle) cy=(middle) r=(radius) {}
                @for s in &level.occupied {
                    path.slot d=(arc(middle, radius, s.slot, slots)) stroke-opacity=(shade(s.count, most)) {
                        title { (t.level) " " (level.level) ", " (s.slot) "/" (slots) ": " (s.count) }
                    }
                }
                @let (x, y) = on_circle(middle, radius - 9.0, fraction(level.current_slot, slots));
                @let (x2, y2) = on_circle(middle, radius + 9.0, fraction(level.current_slot, slots));
                line.hand x1=(format!("{x:.2}")) y1=(format!("{y:.2}")) x2=(format!("{x2:.2}")) y2=(format!("{y2:.2}")) {}
                text x=(middle) y=(format!("{:.1}", middle - radius - 9.5)) { (span(level.slot_span.as_micros())) }
            }
            circle.hub cx=(middle) cy=(middle) r="3" {}
        }
    }
}

fn fraction(slot: u32, slots: u32) -> f64 {
    f64::from(slot % slots) / f64::from(slots)
}

fn on_circle(middle: f64, radius: f64, turn: f64) -> (f64, f64) {
    let (sin, cos) = (turn * TAU).sin_cos();
    (middle + radius * sin, middle - radius * cos)
}

fn arc(middle: f64, radius: f64, slot: u32, slots: u32) -> String {
    let from = fraction(slot, slots);
    // Never a whole turn, which would be no arc at all.
    let to = from + (1.0 / f64::from(slots)).min(0.999);
    let (x1, y1) = on_circle(middle, radius, from);
    let (x2, y2) = on_circle(middle, radius, to);
    let large = u8::from(to - from > 0.5);
    format!("M{x1:.2} {y1:.2}A{radius} {radius} 0 {large} 1 {x2:.2} {y2:.2}")
}

/// From faint to full by the logarithm of the count, so that one task is seen beside a million.
fn shade(count: u64, most: u64) -> String {
    let part = (count as f64 + 1.0).ln() / (most as f64 + 1.0).ln().max(f64::MIN_POSITIVE);
    format!("{:.2}", 0.35 + 0.65 * part.clamp(0.0, 1.0))
}

/// A week of hours as a grid, a row a day: how much each hour has.
pub(crate) fn week(hours: &[u32], days: &[String], label: &str) -> Markup {
    const CELL: usize = 14;
    let most = hours.iter().copied().max().unwrap_or(0);
    let (left, top) = (56, 14);
    let (width, height) = (left + 24 * CELL, top + days.len() * CELL);
    html! {
        svg.heat viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(label) {
            @for hour in (0..24).step_by(6) {
                text x=(left + hour * CELL) y="10" { (hour) }
            }
            @for (row, day) in days.iter().enumerate() {
                text x="0" y=(top + row * CELL + 10) { (day) }
                @for hour in 0..24 {
                    @let n = hours.get(row * 24 + hour).copied().unwrap_or(0);
                    @let class = if n > 0 { "cell has" } else { "cell" };
                    @let opacity = if n > 0 { shade(n.into(), most.into()) } else { "0.5".to_owned() };
                    rect class=(class) fill-opacity=(opacity) x=(left + hour * CELL) y=(top + row * CELL) width=(CELL - 2) height=(CELL - 2) rx="2" {
                        @if n > 0 { title { (day) " " (hour) ":00 · " (n) } }
                    }
                }
            }
        }
    }
}

/// The shards as a square grid, coloured by owner; `None` for nobody.
pub(crate) fn shards(
    owners: &[Option<usize>],
    names: &[String],
    nobody: &str,
    label: &str,
) -> Markup {
    html! {
        svg.shards viewBox="0 0 160 160" role="img" aria-label=(label) {
            @for (shard, owner) in owners.iter().enumerate() {
                rect class=(shard_class(*owner)) x=(shard % 16 * 10) y=(shard / 16 * 10) width="9" height="9" rx="1.5" {
                    title { (shard) ": " (owner.and_then(|o| names.get(o)).map_or(nobody, String::as_str)) }
                }
            }
        }
    }
}

/// The colour of an owner; those beyond the sixth share colours.
pub(crate) fn shard_class(owner: Option<usize>) -> String {
    owner.map_or_else(|| "s".to_owned(), |o| format!("s s{}", o % 6))
}

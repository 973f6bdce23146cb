// SPDX-License-Identifier: PostgreSQL
//! Draws charts as SVG: axes, lines, bars. Colours are classes (c0 to c7), which the page defines for
//! light and dark.

use maud::{html, Markup};

use super::numbers::figures;
use view::html::Visible;
use view::measured::behind;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 34.0;
const COLOURS: usize = 8;

/// A point on a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spot {
    /// Value on the horizontal axis.
    pub x: f64,
    /// Value on the vertical axis.
    pub y: f64,
    /// Half the width of its 95 % interval.
    pub half: f64,
}

/// A line of a chart.
#[derive(Debug, Clone)]
pub struct ChartLine {
    /// Name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub spots: Vec<Spot>,
    /// Whether to draw it without points, as for a curve or a series.
    pub smooth: bool,
    /// Number of its colour.
    pub colour: usize,
}

/// A bar of stacked parts.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Name below the bar.
    pub name: String,
    /// The parts from the bottom up: number of the colour, and height.
    pub parts: Vec<(usize, f64)>,
    /// Half the width of its 95 % interval.
    pub half: f64,
}

/// The name of a chart, and the unit of its vertical axis.
#[derive(Debug, Clone, Copy)]
pub struct ChartFrame<'a> {
    /// Its name, for screen readers.
    pub title: &'a str,
    /// The unit.
    pub unit: &'a str,
}

/// The vertical axis.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// An axis from zero or the minimum to the maximum or above, in steps of 1, 2 or 5.
    fn spanning(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (0.0f64, 0.0f64);
        for value in values.filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if high <= low {
            high = low + 1.0;
        }
        let rough = (high - low) / 5.0;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * unit).find(|s| *s >= rough);
        let step = step.unwrap_or(10.0 * unit);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - share.clamp(-0.05, 1.05) * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self) -> Markup {
        let count = ((self.high - self.low) / self.step).round() as i32;
        html! {
            @for at in (0..=count).map(|n| self.low + f64::from(n) * self.step) {
                @let y = self.y(at);
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(px(y)) y2=(px(y)) {}
                text x=(LEFT - 6.0) y=(px(y + 4.0)) text-anchor="end" {
                    (tick(if at.abs() < 1e-9 * self.step { 0.0 } else { at }))
                }
            }
        }
    }
}

/// A number on an axis, without trailing zeros.
fn tick(value: f64) -> String {
    let text = figures(value, 3);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// A coordinate with one decimal.
fn px(value: f64) -> String {
    format!("{value:.1}")
}

fn chart(frame: ChartFrame<'_>, content: Markup, legend: &[(usize, &str)]) -> Markup {
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(Visible(frame.title)) {
            text.unit x="2" y=(TOP - 12.0) { (Visible(frame.unit)) }
            (content)
        }
        @if !legend.is_empty() {
            ul.legend {
                @for (colour, name) in legend {
                    li {
                        svg width="12" height="12" {
                            rect class={ "f" (colour % COLOURS) } width="12" height="12" {}
                        }
                        (Visible(name))
                    }
                }
            }
        }
    }
}

/// Draws lines over a horizontal axis with these ticks. `dashes` are vertical lines with their texts.
pub fn lines(
    frame: ChartFrame<'_>,
    lines: &[ChartLine],
    ticks: &[f64],
    axis_name: &str,
    dashes: &[(f64, String)],
) -> Markup {
    let spots = || lines.iter().flat_map(|line| &line.spots);
    let axis = Axis::spanning(spots().flat_map(|spot| [spot.y + spot.half, spot.y - spot.half]));
    let xs = || spots().map(|spot| spot.x).chain(ticks.iter().copied());
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    let wide = if high > low { high - low } else { 1.0 };
    let x = |value: f64| LEFT + 10.0 + (value - low) / wide * (WIDTH - LEFT - RIGHT - 20.0);
    // Omit labels that would overlap.
    let mut last = f64::NEG_INFINITY;
    let has_space = |value: &&f64| {
        let fits = x(**value) - last > 34.0;
        last = if fits { x(**value) } else { last };
        fits
    };
    let points = |line: &ChartLine| {
        let point = |spot: &Spot| format!("{:.1},{:.1}", x(spot.x), axis.y(spot.y));
        line.spots.iter().map(point).collect::<Vec<_>>().join(" ")
    };
    let content = html! {
        (axis.draw())
        @for value in ticks.iter().filter(has_space) {
            text x=(px(x(*value))) y=(HEIGHT - BOTTOM + 15.0) text-anchor="middle" { (tick(*value)) }
        }
        text.name x=(WIDTH - RIGHT) y=(HEIGHT - 4.0) text-anchor="end" { (Visible(axis_name)) }
        @for (time, text) in dashes {
            line.mark x1=(px(x(*time))) x2=(px(x(*time))) y1=(TOP) y2=(HEIGHT - BOTTOM) {
                title { (Visible(text)) }
            }
        }
        @for line in lines {
            @let colour = line.colour % COLOURS;
            @let form = if line.smooth { "smooth" } else { "line" };
            polyline class={ (form) " c" (colour) } points=(points(line)) {}
            @for spot in line.spots.iter().filter(|_| !line.smooth) {
                @let at = px(x(spot.x));
                @if spot.half > 0.0 {
                    line class={ "line c" (colour) } x1=(at) x2=(at)
                        y1=(px(axis.y(spot.y + spot.half))) y2=(px(axis.y(spot.y - spot.half))) {}
                }
                circle class={ "f" (colour) } cx=(at) cy=(px(axis.y(spot.y))) r="3" {
                    title { (Visible(&line.name)) ": " (behind(figures(spot.y, 4), Some(figures(spot.half, 2)))) }
                }
            }
        }
    };
    let names: Vec<_> = lines.iter().map(|line| (line.colour, line.name.as_str())).collect();
    chart(frame, content, &names)
}

/// Draws vertical bars; `parts` are the names of the stacked parts.
pub fn bars(frame: ChartFrame<'_>, bars: &[Bar], parts: &[String]) -> Markup {
    let height = |bar: &Bar| bar.parts.iter().map(|(_, value)| value.max(0.0)).sum::<f64>();
    let axis = Axis::spanning(bars.iter().map(|bar| height(bar) + bar.half));
    let space = (WIDTH - LEFT - RIGHT) / bars.len().max(1) as f64;
    let wide = (space * 0.6).min(70.0);
    let content = html! {
        (axis.draw())
        @for (number, bar) in bars.iter().enumerate() {
            @let middle = LEFT + (number as f64 + 0.5) * space;
            @for (at, (part, value)) in bar.parts.iter().enumerate() {
                @let below: f64 = bar.parts[..at].iter().map(|(_, value)| value.max(0.0)).sum();
                @let (top, end) = (axis.y(below + value.max(0.0)), axis.y(below));
                rect class={ "f" (part % COLOURS) } x=(px(middle - 0.5 * wide)) y=(px(top))
                    width=(px(wide)) height=(px((end - top).max(0.0))) {
                    title { (Visible(parts.get(*part).unwrap_or(&bar.name))) ": " (figures(*value, 4)) }
                }
            }
            @if bar.half > 0.0 {
                @let low = (height(bar) - bar.half).max(axis.low);
                line.whisker x1=(px(middle)) x2=(px(middle))
                    y1=(px(axis.y(height(bar) + bar.half))) y2=(px(axis.y(low))) {}
            }
            @for (row, words) in two_rows(&bar.name, (space / 6.2).max(4.0) as usize).iter().enumerate() {
                text x=(px(middle)) y=(HEIGHT - BOTTOM + 14.0 + 13.0 * row as f64) text-anchor="middle" {
                    (Visible(words)) title { (Visible(&bar.name)) }
                }
            }
        }
    };
    let names: Vec<_> = parts.iter().map(String::as_str).enumerate().collect();
    chart(frame, content, if names.len() > 1 { &names } else { &[] })
}

/// Breaks a name into at most two rows of at most `most` letters, and cuts the rest.
fn two_rows(name: &str, most: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in name.split(' ') {
        let last = rows.len() - 1;
        let long = rows[last].chars().count() + 1 + word.chars().count() > most;
        match (rows[last].is_empty(), long && rows.len() < 2) {
            (true, _) => rows[last].push_str(word),
            (_, true) => rows.push(word.into()),
            _ => rows[last] += &format!(" {word}"),
        }
    }
    rows.into_iter().map(|row| row.chars().take(most).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_begin_at_zero_and_include_the_maximum() {
        let axis = Axis::spanning([3.0, 87.0].into_iter());
        assert_eq!((axis.low, axis.high, axis.step), (0.0, 100.0, 20.0));
        let below = Axis::spanning([-3.0, 4.0].into_iter());
        assert!(below.low <= -3.0 && below.high >= 4.0);
        assert!(Axis::spanning(std::iter::empty()).high > 0.0);
    }

    #[test]
    fn long_names_take_two_rows() {
        assert_eq!(two_rows("track_activities off again", 18), ["track_activities", "off again"]);
        assert_eq!(two_rows("base", 18), ["base"]);
        assert_eq!(two_rows("abcdefgh ijklmnop qrst", 6), ["abcdef", "ijklmn"]);
    }

    #[test]
    fn names_are_escaped() {
        let line = ChartLine {
            name: "</svg><script>".into(),
            spots: vec![Spot { x: 1.0, y: 2.0, half: 0.1 }],
            smooth: false,
            colour: 0,
        };
        let frame = ChartFrame { title: "\"><script>", unit: "<i>" };
        let text = lines(frame, &[line], &[1.0], "clients", &[(1.0, "<b>".into())]).0;
        let raw = ["<script>", "<b>", "<i>"];
        assert!(!raw.iter().any(|tag| text.contains(tag)), "{text}");
    }

    #[test]
    fn half_widths_reach_to_both_sides_and_parts_stand_on_each_other() {
        let line = |spots| ChartLine { name: String::new(), spots, smooth: false, colour: 0 };
        let frame = ChartFrame { title: "", unit: "" };
        // An axis up to 3 of 240 px, which ends at 266.
        let drawn = lines(frame, &[line(vec![Spot { x: 1.0, y: 2.0, half: 1.0 }])], &[], "", &[]).0;
        assert!(
            drawn.contains(r#"y1="26.0" y2="186.0""#) && drawn.contains(r#"cy="106.0""#),
            "{drawn}"
        );
        let bar = Bar { name: "a".into(), parts: vec![(0, 2.0), (1, 3.0)], half: 1.0 };
        // Up to 6.
        let drawn = bars(frame, &[bar], &["a".into(), "b".into()]).0;
        for part in [
            r#"y="186.0""#,
            r#"height="80.0""#,
            r#"y="66.0""#,
            r#"height="120.0""#,
            r#"y1="26.0" y2="106.0""#,
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert_eq!([100.0, 20.0, 0.5, 1.25].map(tick), ["100", "20", "0.5", "1.25"]);
    }
}

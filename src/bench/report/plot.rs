//! A line plot as SVG: latency on a logarithmic scale against offered load.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// Left, right, top, bottom.
const MARGINS: [f64; 4] = [70.0, 160.0, 20.0, 50.0];

/// A line of the plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it shows.
    pub label: String,
    /// Its colour.
    pub style: &'static str,
    /// Events per second, and milliseconds.
    pub points: Vec<(f64, f64)>,
}

/// Where values go on the page.
struct Axes {
    load_max: f64,
    /// Powers of ten of the lowest and the highest latency.
    decades: (i32, i32),
}

impl Axes {
    fn of(series: &[Series]) -> Self {
        let points = || series.iter().flat_map(|series| &series.points);
        let load_max = points().map(|(load, _)| *load).fold(1.0, f64::max);
        let lowest = points().map(|(_, latency)| *latency).fold(f64::INFINITY, f64::min);
        let highest = points().map(|(_, latency)| *latency).fold(0.0, f64::max);
        let decade = |latency: f64| latency.clamp(1e-3, 1e7).log10();
        let from = if lowest.is_finite() { decade(lowest).floor() } else { 0.0 };
        let to = decade(highest).ceil().max(from + 1.0);
        Self { load_max: round_up(load_max), decades: (from as i32, to as i32) }
    }

    fn x(&self, load: f64) -> f64 {
        let [left, right, ..] = MARGINS;
        left + load / self.load_max * (WIDTH - left - right)
    }

    fn y(&self, latency: f64) -> f64 {
        let [_, _, top, bottom] = MARGINS;
        let (from, to) = (f64::from(self.decades.0), f64::from(self.decades.1));
        let share = (latency.max(1e-3).log10() - from) / (to - from);
        HEIGHT - bottom - share * (HEIGHT - top - bottom)
    }
}

/// Draws the series.
#[must_use]
pub fn plot(series: &[Series]) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _infallible = draw(&mut out, series);
    out
}

fn draw(out: &mut String, series: &[Series]) -> std::fmt::Result {
    let axes = Axes::of(series);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Latency against offered load</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>"
    )?;
    draw_axes(out, &axes)?;
    for (at, line) in series.iter().filter(|series| !series.points.is_empty()).enumerate() {
        let mut points = line.points.clone();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let path: Vec<String> = points.iter().map(|(load, latency)| format!("{:.1},{:.1}", axes.x(*load), axes.y(*latency))).collect();
        writeln!(out, "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>", line.style, path.join(" "))?;
        for (load, latency) in points {
            writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{}\"/>", axes.x(load), axes.y(latency), line.style)?;
        }
        let (x, y) = (WIDTH - MARGINS[1] + 15.0, MARGINS[2] + 15.0 + at as f64 * 20.0);
        writeln!(out, "<rect x=\"{x}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{}\"/>", y - 6.0, line.style)?;
        writeln!(out, "<text x=\"{}\" y=\"{y}\">{}</text>", x + 20.0, escaped(&line.label))?;
    }
    writeln!(out, "</svg>")
}

fn draw_axes(out: &mut String, axes: &Axes) -> std::fmt::Result {
    let [left, right, top, bottom] = MARGINS;
    let (end, floor) = (WIDTH - right, HEIGHT - bottom);
    for decade in axes.decades.0..=axes.decades.1 {
        let y = axes.y(10_f64.powi(decade));
        writeln!(out, "<line x1=\"{left}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>")?;
        writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", left - 8.0, y + 4.0, 10_f64.powi(decade))?;
    }
    for step in 0..=5 {
        let load = axes.load_max * f64::from(step) / 5.0;
        let x = axes.x(load);
        writeln!(out, "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{floor}\" stroke=\"#dddddd\"/>")?;
        writeln!(out, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{load:.0}</text>", floor + 18.0)?;
    }
    let middle = (left + end) / 2.0;
    writeln!(out, "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">offered load, events per second</text>", HEIGHT - 10.0)?;
    let height = (top + floor) / 2.0;
    writeln!(
        out,
        "<text x=\"18\" y=\"{height}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {height})\">due to verdict, milliseconds</text>"
    )
}

/// The next number with one or two leading digits.
fn round_up(load: f64) -> f64 {
    let step = 10_f64.powf(load.max(1.0).log10().floor()) / 2.0;
    (load / step).ceil() * step
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Compares with a file, or writes it if `UPDATE_SNAPSHOTS` is set.
    pub(crate) fn check_snapshot(path: &str, text: &str) {
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let expected = std::fs::read_to_string(path).unwrap();
        assert!(expected == text, "{path} differs; UPDATE_SNAPSHOTS=1 writes it anew:\n{text}");
    }

    #[test]
    fn the_plot_is_as_it_was() {
        check_snapshot("tests/fixtures/bench/plot.svg", &super::super::samples::findings().plot());
    }

    #[test]
    fn values_go_where_the_axes_say() {
        let series = [Series { label: "a < b".to_owned(), style: "red", points: vec![(9_000.0, 100.0), (1_000.0, 1.0)] }];
        let axes = Axes::of(&series);
        assert_eq!((axes.load_max, axes.decades), (9_000.0, (0, 2)));
        assert_eq!((axes.x(0.0), axes.x(9_000.0)), (70.0, 600.0));
        assert_eq!((axes.y(1.0), axes.y(10.0), axes.y(100.0)), (370.0, 195.0, 20.0));
        let drawn = plot(&series);
        assert!(drawn.contains("a &lt; b") && drawn.matches("<circle").count() == 2, "{drawn}");
        assert!(plot(&[]).ends_with("</svg>\n"));
        assert_eq!([round_up(1.0), round_up(21_300.0), round_up(950.0)], [1.0, 25_000.0, 950.0]);
    }
}

//! Draws a line plot as SVG: latency on a logarithmic scale against offered load.
//!
//! It brings its own background, light or dark as the reader's system prefers, so that it can be read on any page.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 444.0;
/// The margins: left, right, top, bottom.
const MARGINS: [f64; 4] = [70.0, 160.0, 44.0, 50.0];
/// What the plot shows.
const TITLE: &str = "Latency against offered load";
/// Where the title's line stands.
const TITLE_Y: f64 = 27.0;

/// Every colour has a contrast of at least 3 to 1 against its background; lines differ in their dashes as well.
const STYLE: &str = "<style>
.page{fill:#fff;stroke:#d0d7de}text{fill:#1f2328}.grid{stroke:#d8dee4}
.line{fill:none;stroke-width:2}.dot{stroke:none}
.b.line{stroke-dasharray:8 3}.c.line{stroke-dasharray:3 3}.d.line{stroke-dasharray:10 3 2 3}
.a.line{stroke:#0969da}.b.line{stroke:#bc4c00}.c.line{stroke:#8250df}.d.line{stroke:#6e7781}
.a.dot{fill:#0969da}.b.dot{fill:#bc4c00}.c.dot{fill:#8250df}.d.dot{fill:#6e7781}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117;stroke:#30363d}text{fill:#e6edf3}.grid{stroke:#30363d}
.a.line{stroke:#58a6ff}.b.line{stroke:#f0883e}.c.line{stroke:#bc8cff}.d.line{stroke:#9ea7b3}
.a.dot{fill:#58a6ff}.b.dot{fill:#f0883e}.c.dot{fill:#bc8cff}.d.dot{fill:#9ea7b3}
}
</style>";

/// A line of the plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name of what it shows.
    pub label: String,
    /// The class that gives it its colour, one of those in the style sheet.
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
         <title>{TITLE}</title>\n{STYLE}\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>",
        WIDTH - 1.0,
        HEIGHT - 1.0
    )?;
    // Browsers show the element `title` only as a tooltip, and an image in a page shows nothing of it.
    let middle = (MARGINS[0] + WIDTH - MARGINS[1]) / 2.0;
    writeln!(out, "<text x=\"{middle}\" y=\"{TITLE_Y}\" text-anchor=\"middle\" font-size=\"15\" font-weight=\"bold\">{TITLE}</text>")?;
    draw_axes(out, &axes)?;
    for (at, line) in series.iter().filter(|series| !series.points.is_empty()).enumerate() {
        let mut points = line.points.clone();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let path: Vec<String> = points.iter().map(|(load, latency)| format!("{:.1},{:.1}", axes.x(*load), axes.y(*latency))).collect();
        writeln!(out, "<polyline class=\"{} line\" points=\"{}\"/>", line.style, path.join(" "))?;
        for (load, latency) in points {
            writeln!(out, "<circle class=\"{} dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", line.style, axes.x(load), axes.y(latency))?;
        }
        let (x, y) = (WIDTH - MARGINS[1] + 15.0, MARGINS[2] + 15.0 + at as f64 * 20.0);
        writeln!(out, "<line class=\"{} line\" x1=\"{x}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", line.style, x + 20.0, y - 4.0, y - 4.0)?;
        writeln!(out, "<text x=\"{}\" y=\"{y}\">{}</text>", x + 26.0, escaped(&line.label))?;
    }
    writeln!(out, "</svg>")
}

fn draw_axes(out: &mut String, axes: &Axes) -> std::fmt::Result {
    let [left, right, top, bottom] = MARGINS;
    let (end, floor) = (WIDTH - right, HEIGHT - bottom);
    for decade in axes.decades.0..=axes.decades.1 {
        let y = axes.y(10_f64.powi(decade));
        writeln!(out, "<line x1=\"{left}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>")?;
        writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", left - 8.0, y + 4.0, 10_f64.powi(decade))?;
    }
    for step in 0..=5 {
        let load = axes.load_max * f64::from(step) / 5.0;
        let x = axes.x(load);
        writeln!(out, "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{floor}\" class=\"grid\"/>")?;
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

/// Returns the next number with one or two leading digits.
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

    /// Compares with a file, or writes it if `TOLLGATE_UPDATE_FIXTURES` is set.
    pub(crate) fn check_snapshot(path: &str, text: &str) {
        if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
            std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let expected = std::fs::read_to_string(path).unwrap();
        assert!(expected == text, "{path} differs; TOLLGATE_UPDATE_FIXTURES=1 writes it anew:\n{text}");
    }

    #[test]
    fn the_plot_is_as_it_was() {
        check_snapshot("tests/fixtures/bench/plot.svg", &super::super::samples::findings().plot());
    }

    #[test]
    fn values_go_where_the_axes_say() {
        let series = [Series { label: "a < b".to_owned(), style: "a", points: vec![(9_000.0, 100.0), (1_000.0, 1.0)] }];
        let axes = Axes::of(&series);
        assert_eq!((axes.load_max, axes.decades), (9_000.0, (0, 2)));
        assert_eq!((axes.x(0.0), axes.x(9_000.0)), (70.0, 600.0));
        assert_eq!((axes.y(1.0), axes.y(10.0), axes.y(100.0)), (394.0, 219.0, 44.0));
        let drawn = plot(&series);
        assert!(drawn.contains("a &lt; b") && drawn.matches("<circle").count() == 2, "{drawn}");
        assert!(drawn.contains(">Latency against offered load</text>"), "{drawn}");
        assert!(plot(&[]).ends_with("</svg>\n"));
        assert_eq!([round_up(1.0), round_up(21_300.0), round_up(950.0)], [1.0, 25_000.0, 950.0]);
    }
}

//! Line charts over time, as SVG.

use std::fmt::Write;

/// Width and height of a chart in pixels, and the margins around the area of its lines.
const CHART_SIZE: [f64; 2] = [760.0, 280.0];
const LEFT_MARGIN: f64 = 56.0;
const RIGHT_MARGIN: f64 = 130.0;
const TOP_MARGIN: f64 = 30.0;
const BOTTOM_MARGIN: f64 = 34.0;
/// Colours that can be distinguished with red-green colour blindness.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666"];

/// A line chart. Each line has one value per second.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) lines: Vec<(String, Vec<f64>)>,
    /// The value at which a horizontal line is drawn, and the label of that line.
    pub(crate) limit: Option<(f64, &'a str)>,
}

impl Chart<'_> {
    /// Renders the chart as SVG.
    #[expect(clippy::cast_precision_loss, reason = "pixel coordinates are small")]
    pub(crate) fn svg(&self) -> String {
        let seconds = self.lines.iter().map(|(_, line)| line.len()).max().unwrap_or_default().max(1);
        let values = self.lines.iter().flat_map(|(_, line)| line.iter().copied());
        let most = rounded_up(values.chain(self.limit.map(|(limit, _)| limit)).fold(1.0, f64::max));
        let (right, bottom) = (CHART_SIZE[0] - RIGHT_MARGIN, CHART_SIZE[1] - BOTTOM_MARGIN);
        let x = |second: usize| LEFT_MARGIN + (right - LEFT_MARGIN) * second as f64 / seconds as f64;
        let y = |value: f64| bottom - (bottom - TOP_MARGIN) * value / most;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{LEFT_MARGIN}\" y=\"16\" font-size=\"13\">{}</text>\n",
            CHART_SIZE[0], CHART_SIZE[1], self.title
        );
        for part in 0..=4 {
            let value = most * f64::from(part) / 4.0;
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT_MARGIN} {0:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{value}</text>",
                y(value),
                LEFT_MARGIN - 6.0,
                y(value) + 4.0
            );
        }
        for part in 0..=4 {
            let second = seconds * part / 4;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{second} s</text>",
                x(second),
                bottom + 18.0
            );
        }
        for (number, (name, line)) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let points =
                line.iter().enumerate().map(|(second, value)| format!("{:.0},{:.1}", x(second + 1), y(*value)));
            let points = points.collect::<Vec<_>>().join(" ");
            let at = TOP_MARGIN + 10.0 + 18.0 * number as f64;
            let _ = writeln!(
                svg,
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\n\
                 <text x=\"{}\" y=\"{at}\" fill=\"{colour}\">{name}</text>",
                right + 10.0
            );
        }
        if let Some((limit, name)) = self.limit {
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT_MARGIN} {0:.1}H{right}\" stroke=\"#c00\" stroke-dasharray=\"6 4\"/>\
                 <text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\" fill=\"#c00\">{name}</text>",
                y(limit),
                right - 4.0,
                y(limit) - 4.0
            );
        }
        svg + "</svg>\n"
    }
}

/// Rounds the maximum of an axis up to a value whose quarters are round numbers, because the axis
/// is labelled at its quarters.
fn rounded_up(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 2.0, 4.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * unit).find(|step| *step >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_its_lines_and_its_limit() {
        let lines = vec![("EXP#".to_owned(), vec![0.0, 500.0, 1_000.0]), ("RUN#".to_owned(), vec![1.0; 3])];
        let svg = Chart { title: "units", lines, limit: Some((1_000.0, "limit")) }.svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        for part in ["EXP#", "RUN#", ">limit<", ">units<", "247,246.0 439,138.0 630,30.0"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        let rounded = [0.9, 7.0, 101.0, 1_000.0, 1_300.0].map(|value| rounded_up(value).to_string());
        assert_eq!(rounded, ["1", "8", "120", "1000", "2000"]);
    }
}

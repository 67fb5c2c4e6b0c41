//! Small plots as inline SVG. The text beside them says everything that they show.

use maud::{Markup, html};

/// The size of a line plot, in its own units.
const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 36.0;

/// Values over time, oldest first.
pub(in crate::console) fn line(values: &[f64], label: &str) -> Markup {
    let top = values.iter().copied().fold(0.0_f64, f64::max).max(f64::MIN_POSITIVE);
    let step = WIDTH / (values.len().max(2) - 1) as f64;
    let points: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(at, value)| {
            let y = HEIGHT - 2.0 - value / top * (HEIGHT - 4.0);
            format!("{:.1},{y:.1}", at as f64 * step)
        })
        .collect();
    let points = points.join(" ");
    let ground = format!("0,{HEIGHT} {points} {WIDTH},{HEIGHT}");
    html! {
        svg.plot viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label)
            preserveAspectRatio="none" {
            polygon.ground points=(ground) {}
            polyline.line points=(points) fill="none" vector-effect="non-scaling-stroke" {}
        }
    }
}

/// A bar, whose length is the share of the largest value.
pub(in crate::console) fn bars(value: u64, largest: u64) -> Markup {
    let share = value as f64 / largest.max(1) as f64 * 100.0;
    html! {
        svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.ground width="100" height="8" {}
            rect.fill width=(format!("{share:.1}")) height="8" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_of_nothing_or_of_zeros_is_still_a_plot() {
        for values in [&[][..], &[0.0], &[0.0, 0.0]] {
            let drawn = line(values, "nothing").into_string();
            assert!(drawn.contains("<svg") && !drawn.contains("NaN"), "{drawn}");
        }
        assert!(bars(0, 0).into_string().contains("width=\"0.0\""));
    }
}

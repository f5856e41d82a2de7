//! Draws the plots, as SVG.

use std::fs;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::contenders::Role;
use crate::load::Result;
use crate::report::{Curve, Plot};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (900, 420);
const KEY_WIDTH: u32 = 230;
const KEY_LINE: u32 = 22;
const INK: RGBColor = RGBColor(60, 60, 60);
const GRID: RGBColor = RGBColor(228, 228, 228);
const FLOOR: RGBColor = RGBColor(120, 120, 120);
/// Colours that colour-blind people can tell apart, too (Okabe and Ito).
const OURS: [RGBColor; 2] = [RGBColor(0, 114, 178), RGBColor(86, 180, 233)];
const PEERS: [RGBColor; 6] = [
    RGBColor(213, 94, 0),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(140, 86, 75),
    RGBColor(188, 189, 34),
];

/// Draws every plot that has curves, into this folder.
pub(crate) fn draw(curves: &[Curve], folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (file, plots) in [
        ("throughput.svg", &[Plot::Throughput, Plot::RedlockThroughput, Plot::MysqlThroughput][..]),
        ("hand-off.svg", &[Plot::LocalHandoff]),
        ("growth.svg", &[Plot::Keys, Plot::Waiters]),
    ] {
        let of = |plot: Plot| curves.iter().filter(|curve| curve.plot == plot).collect::<Vec<_>>();
        let drawn: Vec<(Plot, Vec<&Curve>)> = plots.iter().map(|plot| (*plot, of(*plot))).collect();
        if drawn.iter().all(|(_, curves)| !curves.is_empty()) {
            let mut text = String::new();
            draw_file(&drawn, &mut text).map_err(|error| format!("{file}: {error}"))?;
            fs::write(folder.join(file), text)?;
        }
    }
    Ok(())
}

/// Draws a plot with its legend at the right, or plots side by side, each with its legend below.
fn draw_file(plots: &[(Plot, Vec<&Curve>)], text: &mut String) -> Result<()> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let longest_key = plots.iter().map(|(_, curves)| curves.len()).max().unwrap_or(0) as u32;
    for (area, (plot, curves)) in root.split_evenly((1, plots.len())).iter().zip(plots) {
        let (chart, key, from) = if plots.len() == 1 {
            let (chart, key) = area.split_horizontally(SIZE.0 - KEY_WIDTH);
            (chart, key, (4, 60))
        } else {
            let (chart, key) = area.split_vertically(SIZE.1 - KEY_LINE * longest_key - KEY_LINE / 2);
            (chart, key, (74, 8))
        };
        draw_chart(&chart, *plot, curves)?;
        draw_key(&key, from, curves)?;
    }
    root.present()?;
    Ok(())
}

fn draw_chart(area: &Area<'_>, plot: Plot, curves: &[&Curve]) -> Result<()> {
    let (title, x_name, y_name) = match plot {
        Plot::Throughput => ("Own keys, one Redis", "tasks", "cycles/s"),
        Plot::RedlockThroughput => ("Own keys, five Redis nodes", "tasks", "cycles/s"),
        Plot::MysqlThroughput => ("Own keys, MariaDB in memory", "tasks", "cycles/s"),
        Plot::LocalHandoff => {
            ("8 processes × 8 tasks want one key", "time until another task has it, µs", "% of hand-offs")
        }
        Plot::Keys => ("Beside held keys", "keys held", "µs per cycle"),
        Plot::Waiters => ("One key, many waiters", "waiters", "µs per acquisition"),
    };
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let least = points().map(|(x, _)| *x).filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    let most = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let is_share = plot == Plot::LocalHandoff;
    let highest = if is_share { 100.0 } else { points().map(|(_, y)| *y).fold(0.0, f64::max) * 1.1 };
    // Of few points, each has its mark.
    let of_points = || curves.first().map_or_else(Vec::new, |curve| curve.points.iter().map(|(x, _)| *x).collect());
    let marks = if is_share || plot == Plot::Keys { powers_of_ten(least, most) } else { of_points() };
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 17).into_font().color(&INK))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(62)
        .build_cartesian_2d((least..most).log_scale().with_key_points(marks), 0.0..highest)?;
    chart
        .configure_mesh()
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 13).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 14).into_font().color(&INK))
        .x_desc(x_name)
        .y_desc(y_name)
        .x_label_formatter(&|x| with_prefix(*x))
        .y_label_formatter(&|y| with_prefix(*y))
        .draw()?;
    for (curve, style) in curves.iter().zip(styles(curves)) {
        chart.draw_series(LineSeries::new(curve.points.iter().copied(), style))?;
        if !is_share {
            chart.draw_series(curve.points.iter().map(|point| Circle::new(*point, 3, style.filled())))?;
        }
    }
    Ok(())
}

/// A line for each curve; the first one begins at `from`.
fn draw_key(area: &Area<'_>, (x, top): (i32, i32), curves: &[&Curve]) -> Result<()> {
    for (y, (curve, style)) in (top..).step_by(KEY_LINE as usize).zip(curves.iter().zip(styles(curves))) {
        area.draw(&PathElement::new([(x, y), (x + 26, y)], style))?;
        area.draw(&Text::new(curve.name.clone(), (x + 34, y - 7), ("sans-serif", 14).into_font().color(&INK)))?;
    }
    Ok(())
}

fn styles(curves: &[&Curve]) -> Vec<ShapeStyle> {
    let (mut ours, mut peers) = (OURS.iter().cycle(), PEERS.iter().cycle());
    let style = |curve: &&Curve| match curve.role {
        Role::Ours => ours.next().unwrap_or(&OURS[0]).stroke_width(3),
        Role::Floor => FLOOR.stroke_width(2),
        Role::Peer => peers.next().unwrap_or(&PEERS[0]).stroke_width(2),
    };
    curves.iter().map(style).collect()
}

fn powers_of_ten(least: f64, most: f64) -> Vec<f64> {
    let powers = least.log10().ceil() as i32..=most.log10().floor() as i32;
    powers.map(|power| 10_f64.powi(power)).collect()
}

fn with_prefix(value: f64) -> String {
    match value {
        millions if millions >= 1e6 => format!("{}M", millions / 1e6),
        thousands if thousands >= 1e3 => format!("{}k", thousands / 1e3),
        _ => format!("{}", (value * 100.0).round() / 100.0),
    }
}

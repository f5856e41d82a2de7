//! Runs the sides of a workload in turns, and computes the rows of the results.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::contenders::Role;
use crate::load::{Pace, Result};
use crate::log::{Sample, histogram, less_is_better};

/// One of the contenders of a workload.
pub(crate) struct Side<'a> {
    role: Role,
    name: String,
    run: Box<dyn FnMut(Pace) -> Result<Sample> + 'a>,
}

impl<'a> Side<'a> {
    pub(crate) fn new(role: Role, name: &str, run: impl FnMut(Pace) -> Result<Sample> + 'a) -> Self {
        Self { role, name: name.to_owned(), run: Box::new(run) }
    }
}

/// The samples of every side of a workload, in the order of the rounds.
#[derive(Debug)]
pub(crate) struct Rounds(Vec<(Role, String, Vec<Sample>)>);

/// Runs all sides in turns, round by round, so that a slow phase of the machine affects all sides alike.
///
/// # Errors
/// The first failure, with the name of the side.
pub(crate) fn interleave(pace: Pace, mut sides: Vec<Side<'_>>) -> Result<Rounds> {
    let mut samples: Vec<Vec<Sample>> = sides.iter().map(|_| Vec::new()).collect();
    for _ in 0..pace.rounds {
        for (side, samples) in sides.iter_mut().zip(&mut samples) {
            samples.push((side.run)(pace).map_err(|error| format!("{}: {error}", side.name))?);
        }
    }
    Ok(Rounds(sides.into_iter().zip(samples).map(|(side, samples)| (side.role, side.name, samples)).collect()))
}

impl Rounds {
    /// One figure of one side, for every round.
    pub(crate) fn figures(&self, name: &str, figure: &str) -> Vec<f64> {
        let side = self.0.iter().find(|(_, found, _)| found == name);
        side.map_or_else(Vec::new, |(_, _, samples)| of(samples, figure))
    }

    /// The same with one round, in which every side has the least that it had of this figure: what it costs without what
    /// others on the machine add.
    pub(crate) fn least(mut self, figure: &str) -> Self {
        for (_, _, samples) in &mut self.0 {
            let of = |sample: &Sample| sample.figures.get(figure).copied().unwrap_or(f64::INFINITY);
            samples.sort_by(|a, b| of(a).total_cmp(&of(b)));
            samples.truncate(1);
        }
        self
    }

    /// The latencies of one side, of all rounds together.
    pub(crate) fn latencies(&self, name: &str) -> Histogram<u64> {
        let samples = self.0.iter().filter(|(_, found, _)| found == name).flat_map(|(_, _, samples)| samples);
        samples.fold(histogram(), |mut all, sample| {
            all += &sample.latencies;
            all
        })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (Role, &str)> {
        self.0.iter().map(|(role, name, _)| (*role, name.as_str()))
    }

    /// Computes a row: one figure of the side `ours`, compared with the floor and with the best peer.
    pub(crate) fn row(&self, what: &str, ours: &str, figure: &'static str, aims: &[Aim]) -> Row {
        let with = |wanted| {
            let sides = self.0.iter().filter(move |(role, ..)| *role == wanted);
            let figures = sides.map(move |(_, name, samples)| (name, of(samples, figure)));
            figures.filter(|(_, found)| !found.is_empty())
        };
        let less_is_better = less_is_better(figure);
        let sign = if less_is_better { -1.0 } else { 1.0 };
        let figures = self.figures(ours, figure);
        let floor = with(Role::Floor).next();
        let peer = with(Role::Peer).max_by(|(_, a), (_, b)| (sign * median(a)).total_cmp(&(sign * median(b))));
        let against = |other: &[f64]| median(&figures.iter().zip(other).map(|(a, b)| a / b).collect::<Vec<_>>());
        let row = Row {
            ratio_floor: floor.as_ref().map(|(_, found)| against(found)),
            floor: floor.as_ref().map(|(_, found)| median(found)),
            ratio_peer: peer.as_ref().map(|(_, found)| against(found)),
            peer: peer.as_ref().map(|(_, found)| median(found)),
            peer_name: peer.map(|(name, _)| name.clone()),
            less_is_better,
            ..Row::of(what, &figures)
        };
        row.judged(aims)
    }
}

fn of(samples: &[Sample], figure: &str) -> Vec<f64> {
    samples.iter().filter_map(|sample| sample.figures.get(figure)).copied().collect()
}

pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The aim for one of our figures: at least, or at most, a multiple of the floor's or the best peer's figure, or a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    FloorTimes(f64),
    WithinFloor(f64),
    PeerTimes(f64),
    WithinPeer(f64),
    AtLeast(f64),
    AtMost(f64),
}

/// One line of the table, and one element of `report.json`.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    /// The figure that was counted or timed, with its unit.
    pub(crate) what: String,
    /// The median over the rounds.
    pub(crate) ours: Option<f64>,
    /// The least and the greatest value over the rounds.
    pub(crate) spread: Option<[f64; 2]>,
    pub(crate) floor: Option<f64>,
    pub(crate) peer: Option<f64>,
    pub(crate) peer_name: Option<String>,
    /// The median over the rounds of our figure divided by the floor's.
    pub(crate) ratio_floor: Option<f64>,
    pub(crate) ratio_peer: Option<f64>,
    pub(crate) aim: String,
    /// Whether all aims are met. `None` if there is no aim, or the side that it is compared with is absent.
    pub(crate) met: Option<bool>,
    /// Why it was not measured.
    pub(crate) absent: Option<String>,
    /// For whoever compares two reports.
    pub(crate) less_is_better: bool,
}

impl Row {
    /// A row of a cost that was measured in these rounds, or outside of rounds.
    pub(crate) fn of(what: &str, figures: &[f64]) -> Self {
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (ours, spread) = (Some(median(figures)), Some([least, most]));
        Self { what: what.to_owned(), ours, spread, less_is_better: true, ..Self::default() }
    }

    /// Adds the figure of a peer that was measured once.
    pub(crate) fn beside(self, name: &str, peer: f64) -> Self {
        let ratio_peer = self.ours.map(|ours| ours / peer);
        Self { peer: Some(peer), peer_name: Some(name.to_owned()), ratio_peer, ..self }
    }

    pub(crate) fn absent(why: String) -> Self {
        Self { absent: Some(why), less_is_better: true, ..Self::default() }
    }

    /// With these aims, and whether they are met.
    pub(crate) fn judged(mut self, aims: &[Aim]) -> Self {
        let judged = aims.iter().map(|aim| match *aim {
            Aim::FloorTimes(times) => (format!("≥ {times} × floor"), self.ratio_floor.map(|ratio| ratio >= times)),
            Aim::WithinFloor(times) => (format!("≤ {times} × floor"), self.ratio_floor.map(|ratio| ratio <= times)),
            Aim::PeerTimes(times) => (format!("≥ {times} × peer"), self.ratio_peer.map(|ratio| ratio >= times)),
            Aim::WithinPeer(times) => (format!("≤ {times:.2} × peer"), self.ratio_peer.map(|ratio| ratio <= times)),
            Aim::AtLeast(least) => (format!("≥ {least}"), self.ours.map(|ours| ours >= least)),
            Aim::AtMost(most) => (format!("≤ {most}"), self.ours.map(|ours| ours <= most)),
        });
        let (aims, met): (Vec<String>, Vec<Option<bool>>) = judged.unzip();
        self.aim = aims.join(", ");
        self.met = match met.as_slice() {
            [] => None,
            some if some.contains(&Some(false)) => Some(false),
            some if some.contains(&None) => None,
            _ => Some(true),
        };
        self
    }
}

//! Runs the sides of a workload in turns, and computes the rows of the results.

use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::job::Job;
use crate::load::Result;
use crate::log::{Sample, histogram, less_is_better};
use crate::pace::Pace;

/// The part that a side has in the comparison: our lock, bare round trips, or another lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Ours,
    Floor,
    Peer,
}

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

    pub(crate) fn job(role: Role, name: &str, job: Job) -> Self {
        Self::new(role, name, move |pace| job.run(pace))
    }
}

/// The samples of every side of a workload, in the order of the rounds.
#[derive(Debug)]
pub(crate) struct Rounds {
    sides: Vec<(Role, String, Vec<Sample>)>,
}

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
    let sides = sides.into_iter().zip(samples).map(|(side, samples)| (side.role, side.name, samples));
    Ok(Rounds { sides: sides.collect() })
}

impl Rounds {
    /// One figure of one side, for every round.
    pub(crate) fn figures(&self, name: &str, figure: &str) -> Vec<f64> {
        let side = self.sides.iter().find(|(_, found, _)| found == name);
        side.map_or_else(Vec::new, |(_, _, samples)| of(samples, figure))
    }

    /// The same with one round, in which every side has the least that it had of this figure: what it costs without what
    /// others on the machine add.
    pub(crate) fn least(mut self, figure: &str) -> Self {
        for (_, _, samples) in &mut self.sides {
            let of = |sample: &Sample| sample.figures.get(figure).copied().unwrap_or(f64::INFINITY);
            samples.sort_by(|a, b| of(a).total_cmp(&of(b)));
            samples.truncate(1);
        }
        self
    }

    /// The latencies of one side, of all rounds together.
    pub(crate) fn latencies(&self, name: &str) -> Histogram<u64> {
        let samples = self.sides.iter().filter(|(_, found, _)| found == name).flat_map(|(_, _, samples)| samples);
        samples.fold(histogram(), |mut all, sample| {
            all += &sample.latencies;
            all
        })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (Role, &str)> {
        self.sides.iter().map(|(role, name, _)| (*role, name.as_str()))
    }

    /// Computes a row: one figure of the side `ours`, compared with the floor and with the best peer.
    pub(crate) fn row(&self, id: &'static str, what: &str, ours: &str, figure: &'static str, aims: &[Aim]) -> Row {
        let role = |wanted| self.sides.iter().filter(move |(role, ..)| *role == wanted);
        let figures = self.figures(ours, figure);
        let floor = role(Role::Floor).map(|(_, _, samples)| of(samples, figure)).find(|found| !found.is_empty());
        let peers = role(Role::Peer).map(|(_, name, samples)| (name, of(samples, figure)));
        let peers = peers.filter(|(_, found)| !found.is_empty());
        let less_is_better = less_is_better(figure);
        let sign = if less_is_better { -1.0 } else { 1.0 };
        let peer = peers.max_by(|(_, a), (_, b)| (sign * median(a)).total_cmp(&(sign * median(b))));
        let against = |other: &[f64]| median(&figures.iter().zip(other).map(|(a, b)| a / b).collect::<Vec<_>>());
        let row = Row {
            id,
            what: what.to_owned(),
            ours: Some(median(&figures)),
            spread: Some(spread(&figures)),
            ratio_floor: floor.as_deref().map(against),
            floor: floor.as_deref().map(median),
            ratio_peer: peer.as_ref().map(|(_, found)| against(found)),
            peer: peer.as_ref().map(|(_, found)| median(found)),
            peer_name: peer.map(|(name, _)| name.clone()),
            aim: String::new(),
            met: None,
            absent: None,
            less_is_better,
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

fn spread(figures: &[f64]) -> [f64; 2] {
    [figures.iter().copied().fold(f64::INFINITY, f64::min), figures.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
}

/// The aim for one of our figures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// At least this multiple of the floor's figure.
    FloorTimes(f64),
    /// At most this multiple of the floor's figure.
    WithinFloor(f64),
    /// At least this multiple of the best peer's figure.
    PeerTimes(f64),
    /// At most this multiple of the best peer's figure.
    WithinPeer(f64),
    AtLeast(f64),
    AtMost(f64),
}

impl Aim {
    /// Whether the row meets the aim. `None` if the side that it is compared with is absent.
    fn is_met(self, row: &Row) -> Option<bool> {
        match self {
            Self::FloorTimes(times) => row.ratio_floor.map(|ratio| ratio >= times),
            Self::WithinFloor(times) => row.ratio_floor.map(|ratio| ratio <= times),
            Self::PeerTimes(times) => row.ratio_peer.map(|ratio| ratio >= times),
            Self::WithinPeer(times) => row.ratio_peer.map(|ratio| ratio <= times),
            Self::AtLeast(least) => row.ours.map(|ours| ours >= least),
            Self::AtMost(most) => row.ours.map(|ours| ours <= most),
        }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FloorTimes(times) => write!(f, "≥ {times} × floor"),
            Self::WithinFloor(times) => write!(f, "≤ {times} × floor"),
            Self::PeerTimes(times) => write!(f, "≥ {times} × peer"),
            Self::WithinPeer(times) => write!(f, "≤ {times:.2} × peer"),
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

/// One line of the table, and one element of `report.json`.
#[derive(Clone, Debug, Serialize)]
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
    /// Creates a row of a figure that was measured outside the rounds.
    pub(crate) fn of(id: &'static str, what: &str, figures: &[f64], aims: &[Aim]) -> Self {
        let row = Self { what: what.to_owned(), absent: None, ..Self::absent(id, "") };
        Self { ours: Some(median(figures)), spread: Some(spread(figures)), ..row }.judged(aims)
    }

    /// Adds the figure of a peer that was measured once.
    pub(crate) fn beside(self, name: &str, peer: f64) -> Self {
        let ratio_peer = self.ours.map(|ours| ours / peer);
        Self { peer: Some(peer), peer_name: Some(name.to_owned()), ratio_peer, ..self }
    }

    pub(crate) fn absent(id: &'static str, why: &str) -> Self {
        Self {
            id,
            what: String::new(),
            ours: None,
            spread: None,
            floor: None,
            peer: None,
            peer_name: None,
            ratio_floor: None,
            ratio_peer: None,
            aim: String::new(),
            met: None,
            absent: Some(why.to_owned()),
            // What is measured outside the rounds is a cost.
            less_is_better: true,
        }
    }

    fn judged(mut self, aims: &[Aim]) -> Self {
        let verdicts: Vec<Option<bool>> = aims.iter().map(|aim| aim.is_met(&self)).collect();
        self.met = match verdicts.as_slice() {
            [] => None,
            some if some.contains(&Some(false)) => Some(false),
            some if some.contains(&None) => None,
            _ => Some(true),
        };
        self.aim = aims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        self
    }
}

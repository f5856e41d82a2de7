//! A comparison of the table: its sides lock on one store, by turns, and its rows say how they compare.

use std::collections::BTreeMap;

use crate::contenders::Kind;
use crate::harness::{Aim, Role, Rounds, Side, interleave, median};
use crate::job::{Job, Shape};
use crate::load::Result;
use crate::log::{HOLD, OF_THE_IDEAL, P50, P99, PER_SECOND, Sample};
use crate::pace::Pace;
use crate::peers;
use crate::report::{Plot, Report};
use crate::servers::{On, Store};

/// A contender in the part that it has here.
pub(crate) type Entry = (Role, &'static str, Kind);

/// One comparison.
pub(crate) struct Comparison {
    pub(crate) on: On,
    shape: Shape,
    entries: &'static [Entry],
    /// Whether the locks in other languages take part.
    others: bool,
    /// Whether each side is also told how near it came to a lock that loses one round trip between two holds.
    of_the_ideal: bool,
    pace: Pace,
    rows: Vec<RowOf>,
    plot: Option<Plot>,
}

/// A row: one figure of one of our sides.
struct RowOf {
    what: String,
    ours: &'static str,
    figure: &'static str,
    aims: Vec<Aim>,
}

impl Comparison {
    pub(crate) fn of(on: On, shape: Shape, entries: &'static [Entry], pace: Pace) -> Self {
        Self { on, shape, entries, others: false, of_the_ideal: false, pace, rows: Vec::new(), plot: None }
    }

    /// Adds a row about the first of our sides.
    pub(crate) fn row(self, what: impl Into<String>, figure: &'static str, aims: &[Aim]) -> Self {
        let ours = self.entries.iter().find(|(role, ..)| *role == Role::Ours).map_or("", |(_, name, _)| name);
        self.row_of(ours, what, figure, aims)
    }

    /// Adds a row about the side with this name.
    pub(crate) fn row_of(
        mut self,
        ours: &'static str,
        what: impl Into<String>,
        figure: &'static str,
        aims: &[Aim],
    ) -> Self {
        self.rows.push(RowOf { what: what.into(), ours, figure, aims: aims.to_vec() });
        self
    }

    /// Begins each row with these words.
    pub(crate) fn words(mut self, words: &str) -> Self {
        self.rows.iter_mut().for_each(|row| row.what = format!("{words}: {}", row.what));
        self
    }

    /// Lets locks in other languages take part.
    pub(crate) fn others(self, others: bool) -> Self {
        Self { others, ..self }
    }

    pub(crate) fn of_the_ideal(self) -> Self {
        Self { of_the_ideal: true, ..self }
    }

    pub(crate) fn plot(self, plot: Plot) -> Self {
        Self { plot: Some(plot), ..self }
    }

    /// Measures it on this store, which is of the kind `on`.
    pub(crate) fn run(&self, id: &'static str, store: &Store) -> Result<Report> {
        let mut report = Report::default();
        let mut sides: Vec<Side<'_>> = self.entries.iter().map(|entry| self.side(store, *entry)).collect();
        if self.others {
            let (found, absent) = peers::found();
            sides.extend(found.iter().map(|peer| {
                let job = peer.job(&store.url(), self.shape);
                self.measured(Role::Peer, peer.name, store, peer.sends, job)
            }));
            report.absent_peers(&absent);
        }
        let rounds = interleave(self.pace, sides)?;
        let row = |row: &RowOf| rounds.row(id, &row.what, row.ours, row.figure, &row.aims);
        report.rows.extend(self.rows.iter().map(row));
        self.draw(&rounds, &mut report);
        Ok(report)
    }

    fn side<'a>(&self, store: &'a Store, (role, name, kind): Entry) -> Side<'a> {
        if kind == Kind::Ping {
            return Side::new(role, name, move |pace| round_trip(store, pace));
        }
        self.measured(role, name, store, kind.sends(), Job::of(store.locks(kind), self.shape))
    }

    /// A side beside whose cycles the work of its server is counted.
    fn measured<'a>(
        &self,
        role: Role,
        name: &str,
        store: &'a Store,
        sends: &'static [&'static str],
        job: Job,
    ) -> Side<'a> {
        let of_the_ideal = self.of_the_ideal;
        Side::new(role, name, move |pace| {
            let mut sample = store.counted(&job, sends, pace)?;
            if of_the_ideal {
                // The hold is as long as the sleep took.
                let ideal = 1e6 / (sample.figures[HOLD] + round_trip(store, pace)?.figures[P99]);
                sample.figures.insert(OF_THE_IDEAL, sample.figures[PER_SECOND] / ideal);
            }
            Ok(sample)
        })
    }

    fn draw(&self, rounds: &Rounds, report: &mut Report) {
        for side in rounds.names() {
            match self.plot {
                Some(Plot::LocalHandoff) if side.0 != Role::Floor => {
                    let latencies = rounds.latencies(side.1);
                    let steps = (0..=200).map(|step| f64::from(step) / 200.0);
                    let points = steps.map(|share| (latencies.value_at_quantile(share) as f64 / 1e3, share * 100.0));
                    report.draw(Plot::LocalHandoff, side, points);
                }
                None | Some(Plot::LocalHandoff) => {}
                Some(by_tasks) => {
                    let reached = median(&rounds.figures(side.1, PER_SECOND));
                    report.draw(by_tasks, side, [(self.shape.tasks as f64, reached)]);
                }
            }
        }
    }
}

/// A round trip to Redis, as the p99 of a hand-off is compared with it: by its median.
fn round_trip(store: &Store, pace: Pace) -> Result<Sample> {
    let pace = Pace { warm_up_millis: 50, window_millis: 200, ..pace };
    let sample = Job::of(store.locks(Kind::Ping), Shape::own_keys(1)).run(pace)?;
    Ok(Sample { figures: BTreeMap::from([(P99, sample.figures[P50])]), ..sample })
}

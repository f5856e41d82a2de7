//! A part of a workload: sides that lock on one store, by turns, and rows that say how they compare; or what is no such loop.

use std::collections::BTreeMap;

use crate::contenders::{Kind, Role};
use crate::harness::{Aim, Rounds, Row, Side, interleave, median};
use crate::job::{Job, Shape};
use crate::load::{Pace, Result};
use crate::log::{HOLD, OF_THE_IDEAL, P50, P99, PER_SECOND, Sample};
use crate::peers;
use crate::report::{Plot, Report};
use crate::servers::{On, Store};

pub(crate) struct Part {
    pub(crate) id: &'static str,
    pub(crate) on: On,
    /// What each of its rows begins with.
    words: &'static str,
    /// What the rows that are added next are about, if that is said in front of each.
    about: String,
    pace: Pace,
    shape: Shape,
    sides: &'static [Kind],
    /// Whether the locks in other languages take part.
    others: bool,
    /// Whether each side is also told how near it came to a lock that loses one round trip between two holds.
    of_the_ideal: bool,
    rows: Vec<RowOf>,
    plot: Option<Plot>,
    /// What is measured in place of sides that acquire and release in a loop.
    other: Option<fn(&Store, Pace) -> Result<Report>>,
}

/// A row: one figure of one of our sides.
struct RowOf {
    what: String,
    ours: Kind,
    figure: &'static str,
    aims: Vec<Aim>,
}

impl Part {
    /// A comparison of these.
    pub(crate) fn of(id: &'static str, on: On, shape: Shape, sides: &'static [Kind], pace: Pace) -> Self {
        let (words, about, rows) = ("", String::new(), Vec::new());
        let (others, of_the_ideal, plot, other) = (false, false, None, None);
        Self { id, on, words, about, pace, shape, sides, others, of_the_ideal, rows, plot, other }
    }

    /// What is not acquired and released in a loop.
    pub(crate) fn other(id: &'static str, on: On, run: fn(&Store, Pace) -> Result<Report>, pace: Pace) -> Self {
        Self { other: Some(run), ..Self::of(id, on, Shape::own_keys(0), &[], pace) }
    }

    /// Says in front of each row that is added next what it is about.
    pub(crate) fn about(self, about: &str) -> Self {
        Self { about: format!("{about}: "), ..self }
    }

    /// Adds a row about the first of our sides.
    pub(crate) fn row(self, what: impl AsRef<str>, figure: &'static str, aims: &[Aim]) -> Self {
        match self.sides.iter().find(|kind| kind.side().0 == Role::Ours) {
            Some(ours) => self.row_of(*ours, what, figure, aims),
            None => self,
        }
    }

    /// Adds a row about this side.
    pub(crate) fn row_of(mut self, ours: Kind, what: impl AsRef<str>, figure: &'static str, aims: &[Aim]) -> Self {
        let what = self.about.clone() + what.as_ref();
        self.rows.push(RowOf { what, ours, figure, aims: aims.to_vec() });
        self
    }

    /// Adds a row about this for each of these figures, without aims.
    pub(crate) fn figures(self, about: &str, figures: &[&'static str]) -> Self {
        figures.iter().fold(self.about(about), |of, figure| of.row(figure, figure, &[]))
    }

    /// Begins each row with these words.
    pub(crate) fn words(self, words: &'static str) -> Self {
        Self { words, ..self }
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
    pub(crate) fn run(&self, store: &Store) -> Result<Report> {
        let report = self.other.map_or_else(|| self.compared(store), |run| run(store, self.pace))?;
        Ok(self.named(report))
    }

    /// The row that says why it was not measured.
    pub(crate) fn absent(&self, why: &str) -> Report {
        self.named(Report::of([Row::absent(format!("{}{why}", self.words))]))
    }

    fn named(&self, mut report: Report) -> Report {
        for row in &mut report.rows {
            row.id = self.id;
            row.what.insert_str(0, self.words);
        }
        report
    }

    fn compared(&self, store: &Store) -> Result<Report> {
        let mut report = Report::default();
        let mut sides: Vec<Side<'_>> = self.sides.iter().map(|kind| self.side(store, *kind)).collect();
        if self.others {
            let (found, absent) = peers::found();
            sides.extend(found.iter().map(|peer| {
                let job = peer.job(store.url(), self.shape);
                self.measured((Role::Peer, peer.name), store, peer.sends, job)
            }));
            report.notes.extend(absent);
        }
        let rounds = interleave(self.pace, sides)?;
        let row = |row: &RowOf| rounds.row(&row.what, row.ours.side().1, row.figure, &row.aims);
        report.rows.extend(self.rows.iter().map(row));
        self.draw(&rounds, &mut report);
        Ok(report)
    }

    fn side<'a>(&self, store: &'a Store, kind: Kind) -> Side<'a> {
        let (role, name) = kind.side();
        if kind == Kind::Ping {
            return Side::new(role, name, move |pace| round_trip(store, pace));
        }
        self.measured((role, name), store, kind.sends(), Job::of(store.locks(kind), self.shape))
    }

    /// A side beside whose cycles the work of its server is counted.
    fn measured<'a>(
        &self,
        (role, name): (Role, &str),
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
        let Some(plot) = self.plot else { return };
        let is_share = plot == Plot::LocalHandoff;
        for side in rounds.names().filter(|(role, _)| !is_share || *role != Role::Floor) {
            if is_share {
                let latencies = rounds.latencies(side.1);
                let at = |share| (latencies.value_at_quantile(share) as f64 / 1e3, share * 100.0);
                report.draw(plot, side, (0..=200).map(|step| at(f64::from(step) / 200.0)));
            } else {
                let reached = median(&rounds.figures(side.1, PER_SECOND));
                report.draw(plot, side, [(self.shape.tasks as f64, reached)]);
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

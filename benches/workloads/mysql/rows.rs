//! The rows of a workload in the report: once for each kind of server.

use super::server::{Durability, MariaDb};
use crate::harness::{Aim, Rounds, Row};
use crate::load::Result;
use crate::report::Report;

/// Measures on a server of each kind.
pub(super) fn on_each(
    id: &'static str,
    measure: impl Fn(&MariaDb, &'static str) -> Result<Vec<Row>>,
) -> Result<Report> {
    let mut report = Report::default();
    for durability in Durability::BOTH {
        match MariaDb::start(durability)? {
            Ok(server) => report.rows.extend(measure(&server, durability.words())?),
            Err(why) => report.push(Row::absent(id, &format!("{}: {why}", durability.words()))),
        }
    }
    Ok(report)
}

/// The rows of one workload on one server.
pub(super) struct Rows<'r> {
    pub(super) id: &'static str,
    pub(super) words: &'static str,
    pub(super) rounds: &'r Rounds,
}

impl Rows<'_> {
    pub(super) fn of(&mut self, what: &str, ours: &str, figure: &'static str, aims: &[Aim]) -> Row {
        self.rounds.row(self.id, &format!("{}: {what}", self.words), ours, figure, aims)
    }
}

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold_core::Clock;
use leasehold_core::clock::Moment;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error as Failure};

use crate::statement::reply::Row;

/// The identity of the server process that the connections of one generation lead to. The first connection asks for
/// it; until then it is unknown.
#[derive(Clone, Debug)]
pub(super) struct ServerIdentity {
    clock: Clock,
    identity: Arc<OnceLock<Observed>>,
}

/// What one connection found out about its server.
#[derive(Clone, Debug)]
struct Observed {
    /// The variables that tell one server from another, as far as the server has them.
    name: Vec<(String, String)>,
    asked_at: Moment,
    took: Duration,
    /// For how many seconds the server had been running when it was asked.
    uptime: i64,
}

/// The error of a fresh connection that leads to another server than the connections before it, or to the same server
/// after a restart.
#[derive(Debug)]
pub(super) struct OtherServer;

/// `MySQL` has `server_uuid`, later releases of `MariaDB` have `server_uid`, and both have the rest.
const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
                   ('server_uuid', 'server_uid', 'server_id', 'hostname', 'port', 'datadir')";

const UPTIME: &str = "SHOW GLOBAL STATUS LIKE 'Uptime'";

/// By how much the uptime in whole seconds may differ from the expected one, beside the time that the queries took.
const ROUNDING: Duration = Duration::from_secs(2);

impl ServerIdentity {
    pub(super) fn unknown(clock: Clock) -> Self {
        Self { clock, identity: Arc::default() }
    }

    /// Checks that a fresh connection leads to this server. The first connection that is checked says which one it is.
    ///
    /// # Errors
    /// [`OtherServer`] if the connection leads elsewhere, and the errors of the driver.
    pub(super) async fn check(&self, conn: &mut Conn) -> Result<(), Failure> {
        let asked_at = self.clock.now();
        let name = conn.query::<mysql_async::Row, _>(VARIABLES).await?.into_iter().map(Row::from);
        let name = name.map(|row| (row.text(0), row.text(1))).collect();
        let uptime: Option<mysql_async::Row> = conn.query_first(UPTIME).await?;
        let uptime = uptime.map_or(0, |row| seconds(&Row::from(row).text(1)));
        let found = Observed { name, asked_at, took: self.clock.now().since(asked_at), uptime };
        let known = self.identity.get_or_init(|| found.clone());
        if known.is_of_the_process_of(&found) { Ok(()) } else { Err(Failure::Other(Box::new(OtherServer))) }
    }

    /// Whether this is the server of `former` after a restart.
    pub(super) fn is_restart_of(&self, former: &Self) -> bool {
        let name = |server: &Self| server.identity.get().map(|identity| identity.name.clone());
        name(self).is_some() && name(self) == name(former)
    }
}

impl Observed {
    /// Whether a later connection found the same process: it has the same name, and has been running all the time.
    fn is_of_the_process_of(&self, later: &Self) -> bool {
        let passed = later.asked_at.since(self.asked_at).as_secs();
        let expected = self.uptime.saturating_add_unsigned(passed);
        let apart = Duration::from_secs(expected.abs_diff(later.uptime));
        self.name == later.name && apart <= self.took + later.took + ROUNDING
    }
}

/// A count of seconds that a server shows without a sign: it is below zero if the clock was set back behind the server's start.
fn seconds(text: &str) -> i64 {
    text.parse::<u64>().map_or(0, u64::cast_signed)
}

impl fmt::Display for OtherServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the address leads to another server now")
    }
}

impl std::error::Error for OtherServer {}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(server: &str, after: u64, took: u64, uptime: u64) -> Observed {
        let uptime = seconds(&uptime.to_string());
        let asked_at = Moment::default().plus(Duration::from_secs(1000 + after));
        let name = vec![("server_uuid".to_owned(), server.to_owned())];
        Observed { name, asked_at, took: Duration::from_secs(took), uptime }
    }

    #[test]
    fn a_server_process_is_known_by_its_name_and_by_how_long_it_has_been_running() {
        let first = observed("a", 0, 1, 500);
        for (later, same) in [
            (observed("a", 0, 0, 500), true),
            (observed("a", 100, 1, 600), true),
            // Both queries took a second, and the server rounds.
            (observed("a", 100, 1, 604), true),
            (observed("a", 100, 1, 596), true),
            (observed("a", 100, 1, 605), false),
            (observed("a", 100, 1, 595), false),
            (observed("a", 100, 2, 605), true),
            // Restarted.
            (observed("a", 100, 1, 3), false),
            (observed("b", 100, 1, 600), false),
            // Its clock was set back behind its start.
            (observed("a", 100, 1, u64::MAX - 10), false),
        ] {
            assert_eq!(first.is_of_the_process_of(&later), same, "{later:?}");
        }
    }

    #[test]
    fn a_server_whose_clock_is_behind_its_start_is_known_too() {
        let first = observed("a", 0, 1, u64::MAX - 10);
        assert!(first.is_of_the_process_of(&observed("a", 100, 1, 89)));
        assert!(first.is_of_the_process_of(&observed("a", 5, 1, u64::MAX - 5)));
        assert!(!first.is_of_the_process_of(&observed("a", 5, 1, u64::MAX - 60)));
    }
}

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold_core::Clock;
use leasehold_core::clock::Moment;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error as Failure, Row};

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
    uptime: u64,
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
        let name = conn.query::<Row, _>(VARIABLES).await?.iter().map(|row| (text(row, 0), text(row, 1))).collect();
        let uptime = conn.query_first::<Row, _>(UPTIME).await?.map_or(0, |row| text(&row, 1).parse().unwrap_or(0));
        let found = Observed { name, asked_at, took: self.clock.now().since(asked_at), uptime };
        let known = self.identity.get_or_init(|| found.clone());
        let expected = known.uptime + found.asked_at.since(known.asked_at).as_secs();
        let apart = Duration::from_secs(expected.abs_diff(found.uptime));
        if known.name == found.name && apart <= known.took + found.took + ROUNDING {
            Ok(())
        } else {
            Err(Failure::Other(Box::new(OtherServer)))
        }
    }

    /// Whether this is the server of `former` after a restart.
    pub(super) fn is_restart_of(&self, former: &Self) -> bool {
        let name = |server: &Self| server.identity.get().map(|identity| identity.name.clone());
        name(self).is_some() && name(self) == name(former)
    }
}

fn text(row: &Row, index: usize) -> String {
    row.get_opt::<Option<String>, usize>(index).and_then(Result::ok).flatten().unwrap_or_default()
}

impl fmt::Display for OtherServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the address leads to another server now")
    }
}

impl std::error::Error for OtherServer {}

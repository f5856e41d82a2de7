use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold_core::Clock;
use leasehold_core::clock::Moment;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error as Failure, Row};

/// Which process of which server the connections of a generation lead to; unknown until the first of them asks.
#[derive(Clone, Debug)]
pub(super) struct Server {
    clock: Clock,
    identity: Arc<OnceLock<Identity>>,
}

#[derive(Clone, Debug)]
struct Identity {
    /// All that tells one server from another, where it has it.
    name: Vec<(String, String)>,
    asked_at: Moment,
    took: Duration,
    /// For how long it had been running then, in seconds.
    uptime: u64,
}

/// The connection leads to another server than those before it, or to one that was started anew.
#[derive(Debug)]
pub(super) struct Other;

/// `MySQL` has the first, `MariaDB` the second since its later releases, and both have the rest.
const WHO: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
                   ('server_uuid', 'server_uid', 'server_id', 'hostname', 'port', 'datadir')";

const UPTIME: &str = "SHOW GLOBAL STATUS LIKE 'Uptime'";

/// By how much two readings of whole seconds may differ, beside the time that they took.
const ROUNDING: Duration = Duration::from_secs(2);

impl Server {
    pub(super) fn unknown(clock: Clock) -> Self {
        Self { clock, identity: Arc::default() }
    }

    /// Whether this fresh connection leads to it.
    ///
    /// # Errors
    /// [`Other`] if it does not, and those of the driver.
    pub(super) async fn is_at(&self, conn: &mut Conn) -> Result<(), Failure> {
        let asked_at = self.clock.now();
        let name = conn.query::<Row, _>(WHO).await?.iter().map(|row| (text(row, 0), text(row, 1))).collect();
        let uptime = conn.query_first::<Row, _>(UPTIME).await?.map_or(0, |row| text(&row, 1).parse().unwrap_or(0));
        let found = Identity { name, asked_at, took: self.clock.now().since(asked_at), uptime };
        let known = self.identity.get_or_init(|| found.clone());
        let expected = known.uptime + found.asked_at.since(known.asked_at).as_secs();
        let apart = Duration::from_secs(expected.abs_diff(found.uptime));
        if known.name == found.name && apart <= known.took + found.took + ROUNDING {
            Ok(())
        } else {
            Err(Failure::Other(Box::new(Other)))
        }
    }

    /// Whether it is the same server as this one, started anew.
    pub(super) fn succeeds(&self, former: &Self) -> bool {
        let name = |server: &Self| server.identity.get().map(|identity| identity.name.clone());
        name(self).is_some() && name(self) == name(former)
    }
}

fn text(row: &Row, index: usize) -> String {
    row.get_opt::<Option<String>, usize>(index).and_then(Result::ok).flatten().unwrap_or_default()
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the address leads to another server now")
    }
}

impl std::error::Error for Other {}

use std::time::Duration;

use leasehold_core::Clock;
use mysql_async::{Opts, OptsBuilder, Pool, PoolConstraints};

use super::identity::ServerIdentity;

/// The pools of connections to one server process, from the moment when the address led to it until it leads elsewhere.
#[derive(Clone)]
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) server: ServerIdentity,
    /// One of each [`PoolKind`].
    pub(super) pools: [Pool; 3],
}

/// Which pool a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKind {
    /// The pool of the statements; the URL says its size with `pool_min` and `pool_max`.
    Common,
    /// Two connections apart from the others, so that leases are renewed also while all others are busy.
    Reserved,
    /// The connections of the advisory queue, at most `pool_max`. Each is kept for as long as its waiter waits or holds.
    AdvisoryQueue,
}

/// How long a connection beyond the minimum of its pool may be idle before it is closed.
const IDLE: Duration = Duration::from_secs(60);

/// The statement with which every session begins.
///
/// A server whose default is `autocommit = 0` would lose every lock in silence. A mode that is not strict would cut
/// names off, and so merge them; `SIMULTANEOUS_ASSIGNMENT` and the modes of other databases would change what the
/// statements mean. No statement may wait longer for a row or a table than its client waits for the answer. Isolation
/// level and time zone stay as they are: the statements are right under all of them, and READ COMMITTED cannot be
/// logged with `binlog_format = STATEMENT`.
const SETUP: &str = "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
                     innodb_lock_wait_timeout = 1, lock_wait_timeout = 1";

impl Generation {
    /// The first generation has the number zero. Nothing is sent.
    pub(super) fn new(number: u64, opts: &Opts, clock: &Clock) -> Self {
        let server = ServerIdentity::unknown(clock.clone());
        let pool = |kind: PoolKind| Pool::new(kind.opts(opts, &server));
        let pools = PoolKind::ALL.map(pool);
        Self { number, server, pools }
    }
}

impl PoolKind {
    pub(super) const ALL: [Self; 3] = [Self::Common, Self::Reserved, Self::AdvisoryQueue];

    pub(super) fn constraints(self, opts: &Opts) -> PoolConstraints {
        let given = opts.pool_opts().constraints();
        let (min, max) = match self {
            Self::Common => (given.min(), given.max()),
            Self::Reserved => (0, 2),
            Self::AdvisoryQueue => (0, given.max()),
        };
        PoolConstraints::new(min, max).unwrap_or(given)
    }

    /// The options for the driver: see "Defaults of the driver that are not kept" in the README.
    fn opts(self, opts: &Opts, server: &ServerIdentity) -> OptsBuilder {
        let pool = opts.pool_opts().clone().with_constraints(self.constraints(opts));
        let pool = pool.with_reset_connection(false).with_inactive_connection_ttl(IDLE);
        // The driver runs them from the last to the first, so that ours is the one that stays.
        let setup = [SETUP.to_owned()].into_iter().chain(opts.setup().iter().cloned()).collect();
        let (theirs, server) = (opts.after_connect(), server.clone());
        OptsBuilder::from_opts(opts.clone()).prefer_socket(false).pool_opts(pool).setup::<String>(setup).after_connect(
            move |conn| {
                let (theirs, server) = (theirs.clone(), server.clone());
                Box::pin(async move {
                    if let Some(theirs) = theirs {
                        theirs(&mut *conn).await?;
                    }
                    server.check(conn).await
                })
            },
        )
    }
}

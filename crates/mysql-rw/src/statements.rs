use leasehold_core::Result;
use leasehold_mysql::{Column, Kind, Layout, Leases, Namespace, TableName, statements};

/// A row per key: the writer, its mark, whose turn it is, and the newest epoch.
pub(crate) const LOCKS: Layout = Layout {
    name: "leasehold mysql-rw",
    changes: &[],
    columns: &[
        Column { name: "name", kind: Kind::Bytes(Namespace::MAX_NAME), optional: false },
        Column { name: "tenure", kind: Kind::Number, optional: false },
        Column { name: "written", kind: Kind::Number, optional: false },
        Column { name: "verdict", kind: Kind::Flag, optional: false },
        Column { name: "writer", kind: Kind::Binary(16), optional: true },
        Column { name: "waiting", kind: Kind::Binary(16), optional: true },
        Column { name: "writer_expires_at", kind: Kind::Moment, optional: false },
        Column { name: "readers_wait_until", kind: Kind::Moment, optional: false },
        Column { name: "readers_turn_until", kind: Kind::Moment, optional: false },
        Column { name: "acquired_at", kind: Kind::Moment, optional: false },
        Column { name: "label", kind: Kind::Bytes(1024), optional: true },
        Column { name: "reason", kind: Kind::Bytes(1024), optional: true },
        Column { name: "forced", kind: Kind::Binary(16), optional: true },
    ],
    primary_key: &["name"],
};

/// A row per reader, for as long as it reads.
pub(crate) const READERS: Layout = Layout {
    name: "leasehold mysql-rw readers",
    changes: &[],
    columns: &[
        Column { name: "name", kind: Kind::Bytes(Namespace::MAX_NAME), optional: false },
        Column { name: "owner", kind: Kind::Binary(16), optional: false },
        Column { name: "tenure", kind: Kind::Number, optional: false },
        Column { name: "expires_at", kind: Kind::Moment, optional: false },
        Column { name: "acquired_at", kind: Kind::Moment, optional: false },
        Column { name: "label", kind: Kind::Bytes(1024), optional: true },
        Column { name: "reason", kind: Kind::Bytes(1024), optional: true },
        Column { name: "forced", kind: Kind::Flag, optional: false },
    ],
    primary_key: &["name", "owner"],
};

statements! {
    /// The statements, for one pair of tables.
    Statements(locks, readers):
        create, claim, drain, purge, mark, extend_writers, take_over_writer, look_writers, let_go_writer, evict_writer,
        draw, admit, downgrade_draw, extend_readers, take_over_reader, look_readers, let_go_reader, forget_reader,
        evict_readers, holders, reach_locks, reach_readers, keys, dead_readers, bury_readers, idle, collect,
}

impl Statements {
    pub(crate) fn writers(&self) -> Leases<'_> {
        Leases { extend: &self.extend_writers, look: &self.look_writers, take_over: &self.take_over_writer }
    }

    pub(crate) fn readers(&self) -> Leases<'_> {
        Leases { extend: &self.extend_readers, look: &self.look_readers, take_over: &self.take_over_reader }
    }
}

/// The readers' table beside this one.
pub(crate) fn readers_of(locks: &TableName) -> Result<TableName> {
    TableName::new(&format!("{}_readers", locks.as_str()))
}

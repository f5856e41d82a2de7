use leasehold_core::Result;
use leasehold_mysql::{Column, Kind, Layout, Namespace, Table, TableName, statement};

/// A row per key: the writer, its mark, whose turn it is, and the newest tenure number.
pub(crate) const LOCKS: Layout = Layout {
    version: "leasehold mysql-rw 1",
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
    version: "leasehold mysql-rw readers 1",
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

/// The statements, for one pair of tables.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) create: String,
    pub(crate) claim: String,
    pub(crate) drain: String,
    pub(crate) purge: String,
    pub(crate) mark: String,
    pub(crate) writers: Table,
    pub(crate) let_go_writer: String,
    pub(crate) evict_writer: String,
    pub(crate) draw: String,
    pub(crate) admit: String,
    pub(crate) step_down_draw: String,
    pub(crate) step_down_admit: String,
    pub(crate) readers: Table,
    pub(crate) let_go_reader: String,
    pub(crate) forget_reader: String,
    pub(crate) evict_readers: String,
    pub(crate) holders: String,
    pub(crate) keys: String,
    pub(crate) dead_readers: String,
    pub(crate) bury_reader: String,
    pub(crate) idle: String,
    pub(crate) collect: String,
}

/// The readers' table beside this one.
pub(crate) fn readers_of(locks: &TableName) -> Result<TableName> {
    TableName::new(&format!("{}_readers", locks.as_str()))
}

impl Statements {
    pub(crate) fn new(locks: &TableName, readers: &TableName) -> Self {
        let of = |source| statement(source, &[("locks", locks), ("readers", readers)]);
        Self {
            create: of(include_str!("sql/create.sql")),
            claim: of(include_str!("sql/claim.sql")),
            drain: of(include_str!("sql/drain.sql")),
            purge: of(include_str!("sql/purge.sql")),
            mark: of(include_str!("sql/mark.sql")),
            writers: Table {
                extend: of(include_str!("sql/extend_writers.sql")),
                look: of(include_str!("sql/look_writers.sql")),
            },
            let_go_writer: of(include_str!("sql/let_go_writer.sql")),
            evict_writer: of(include_str!("sql/evict_writer.sql")),
            draw: of(include_str!("sql/draw.sql")),
            admit: of(include_str!("sql/admit.sql")),
            step_down_draw: of(include_str!("sql/step_down_draw.sql")),
            step_down_admit: of(include_str!("sql/step_down_admit.sql")),
            readers: Table {
                extend: of(include_str!("sql/extend_readers.sql")),
                look: of(include_str!("sql/look_readers.sql")),
            },
            let_go_reader: of(include_str!("sql/let_go_reader.sql")),
            forget_reader: of(include_str!("sql/forget_reader.sql")),
            evict_readers: of(include_str!("sql/evict_readers.sql")),
            holders: of(include_str!("sql/holders.sql")),
            keys: of(include_str!("sql/keys.sql")),
            dead_readers: of(include_str!("sql/dead_readers.sql")),
            bury_reader: of(include_str!("sql/bury_reader.sql")),
            idle: of(include_str!("sql/idle.sql")),
            collect: of(include_str!("sql/collect.sql")),
        }
    }
}

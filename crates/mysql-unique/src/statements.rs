use leasehold_mysql::{Column, Kind, Layout, Namespace, Table, TableName, statement};

/// The one table. No auto-increment column: it would take over `LAST_INSERT_ID`. No second index: it would cost every
/// claim. No text column for the name: every collation merges different keys.
pub(crate) const LAYOUT: Layout = Layout {
    version: "leasehold mysql-unique 1",
    columns: &[
        Column { name: "name", kind: Kind::Bytes(Namespace::MAX_NAME), optional: false },
        Column { name: "owner", kind: Kind::Binary(16), optional: false },
        Column { name: "tenure", kind: Kind::Number, optional: false },
        Column { name: "expires_at", kind: Kind::Moment, optional: false },
        Column { name: "acquired_at", kind: Kind::Moment, optional: false },
        Column { name: "label", kind: Kind::Bytes(1024), optional: true },
        Column { name: "reason", kind: Kind::Bytes(1024), optional: true },
        Column { name: "forced", kind: Kind::Binary(16), optional: true },
    ],
    primary_key: &["name"],
};

/// The statements, for one table.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) claim: String,
    pub(crate) leases: Table,
    pub(crate) let_go: String,
    pub(crate) inspect: String,
    pub(crate) list: String,
    pub(crate) evict: String,
    pub(crate) idle: String,
    pub(crate) collect: String,
}

impl Statements {
    pub(crate) fn new(table: &TableName) -> Self {
        let of = |source| statement(source, &[("table", table)]);
        Self {
            claim: of(include_str!("sql/claim.sql")),
            leases: Table { extend: of(include_str!("sql/extend.sql")), look: of(include_str!("sql/look.sql")) },
            let_go: of(include_str!("sql/let_go.sql")),
            inspect: of(include_str!("sql/inspect.sql")),
            list: of(include_str!("sql/list.sql")),
            evict: of(include_str!("sql/evict.sql")),
            idle: of(include_str!("sql/idle.sql")),
            collect: of(include_str!("sql/collect.sql")),
        }
    }
}

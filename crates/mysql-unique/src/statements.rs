use leasehold_mysql::{Column, Kind, Layout, Leases, Namespace, statements};

/// The one table. No auto-increment column: it would take over `LAST_INSERT_ID`. No second index: it would cost every
/// claim. No text column for the name: every collation merges different keys.
pub(crate) const LAYOUT: Layout = Layout {
    name: "leasehold mysql-unique",
    changes: &[],
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

statements! {
    /// The statements, for one table.
    Statements(table): claim, extend, take_over, look, let_go, inspect, reach, list, evict, idle, collect
}

impl Statements {
    pub(crate) fn leases(&self) -> Leases<'_> {
        Leases { extend: &self.extend, look: &self.look, take_over: &self.take_over }
    }
}

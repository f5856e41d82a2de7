use leasehold_mysql::{Column, ColumnType, LeaseStatements, Namespace, ReleaseStatements, TableSchema, statements};

/// The one table. It has no auto-increment column, which would take over `LAST_INSERT_ID`; no second index, which would
/// cost every claim; and no text column for the name, because every collation merges different keys.
pub(crate) const TABLE: TableSchema = TableSchema {
    name: "leasehold mysql-unique",
    version: 3,
    columns: &[
        Column { name: "name", kind: ColumnType::Bytes(Namespace::MAX_NAME), optional: false },
        Column { name: "owner", kind: ColumnType::Binary(16), optional: false },
        Column { name: "epoch", kind: ColumnType::Number, optional: false },
        Column { name: "expires_at", kind: ColumnType::Moment, optional: false },
        Column { name: "acquired_at", kind: ColumnType::Moment, optional: false },
        Column { name: "label", kind: ColumnType::Bytes(1024), optional: true },
        Column { name: "reason", kind: ColumnType::Bytes(1024), optional: true },
        Column { name: "forced", kind: ColumnType::Binary(16), optional: true },
    ],
    primary_key: &["name"],
};

statements! {
    /// The statements about one table, each from the file of its name in `sql/`.
    Statements(table): try_acquire, try_acquire_batch, claimed, renew, status, release, release_batch, released, take_over,
        inspect, chunk_end, list, force_release, gc_find, gc_delete
}

impl Statements {
    /// The statements about the leases.
    pub(crate) fn leases(&self) -> LeaseStatements<'_> {
        LeaseStatements { renew: &self.renew, status: &self.status, take_over: &self.take_over }
    }

    /// The statements that release.
    pub(crate) fn releases(&self) -> ReleaseStatements {
        ReleaseStatements {
            one: self.release.clone(),
            many: self.release_batch.clone(),
            outcome: self.released.clone(),
            status: self.status.clone(),
        }
    }
}

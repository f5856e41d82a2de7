use leasehold_core::Result;
use leasehold_mysql::{
    Column, ColumnType, LeaseStatements, Namespace, ReleaseStatements, TableName, TableSchema, statements,
};

/// The table of keys. The row of a key has its writer or the mark of a waiting one, the readers' turn, and the newest
/// epoch.
pub(crate) const LOCKS: TableSchema = TableSchema {
    name: "leasehold mysql-rw",
    version: 3,
    columns: &[
        Column { name: "name", kind: ColumnType::Bytes(Namespace::MAX_NAME), optional: false },
        Column { name: "epoch", kind: ColumnType::Number, optional: false },
        Column { name: "written", kind: ColumnType::Number, optional: false },
        Column { name: "verdict", kind: ColumnType::Flag, optional: false },
        Column { name: "writer", kind: ColumnType::Binary(16), optional: true },
        Column { name: "waiting", kind: ColumnType::Binary(16), optional: true },
        Column { name: "writer_expires_at", kind: ColumnType::Moment, optional: false },
        Column { name: "readers_wait_until", kind: ColumnType::Moment, optional: false },
        Column { name: "readers_turn_until", kind: ColumnType::Moment, optional: false },
        Column { name: "acquired_at", kind: ColumnType::Moment, optional: false },
        Column { name: "label", kind: ColumnType::Bytes(1024), optional: true },
        Column { name: "reason", kind: ColumnType::Bytes(1024), optional: true },
        Column { name: "forced", kind: ColumnType::Binary(16), optional: true },
    ],
    primary_key: &["name"],
};

/// The table of readers. A reader has a row for as long as it holds, and, after a forced release, until its lease is over; `forced`
/// says by which one, or is the reader's own id before a downgrade is done.
pub(crate) const READERS: TableSchema = TableSchema {
    name: "leasehold mysql-rw readers",
    version: 4,
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
    primary_key: &["name", "owner"],
};

statements! {
    /// The statements about one pair of tables, each from the file of its name in `sql/`.
    Statements(locks, readers):
        create_row, try_acquire_writer, try_acquire_writer_batch, read_keys, claimed, count_readers, delete_expired_readers, mark_waiting_writer, renew_writers,
        take_over_writer, writer_status, release_writer, release_writer_batch, released_writers, force_release_writer, draw_epochs, try_acquire_reader, downgrade_epoch, downgrade_reader, downgrade,
        renew_readers, take_over_reader, reader_status, release_reader, delete_reader, force_release_readers, force_released_readers, inspect,
        chunk_end_locks, chunk_end_readers, list, gc_find_readers, gc_delete_readers, gc_find_locks, gc_delete_locks,
}

impl Statements {
    /// The statements about the leases of writers.
    pub(crate) fn writers(&self) -> LeaseStatements<'_> {
        LeaseStatements { renew: &self.renew_writers, status: &self.writer_status, take_over: &self.take_over_writer }
    }

    /// The statements that release writers.
    pub(crate) fn releases(&self) -> ReleaseStatements {
        ReleaseStatements {
            one: self.release_writer.clone(),
            many: self.release_writer_batch.clone(),
            outcome: self.released_writers.clone(),
            status: self.writer_status.clone(),
        }
    }

    /// The statements about the leases of readers.
    pub(crate) fn readers(&self) -> LeaseStatements<'_> {
        LeaseStatements { renew: &self.renew_readers, status: &self.reader_status, take_over: &self.take_over_reader }
    }
}

/// The name of the table of readers that belongs to this table of keys.
pub(crate) fn readers_of(locks: &TableName) -> Result<TableName> {
    TableName::new(&format!("{}_readers", locks.as_str()))
}

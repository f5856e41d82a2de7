use std::time::Duration;

use leasehold_core::{BoxFuture, Error, ErrorKind, Result};
use mysql_async::Params;

use super::table::{Fault, TableSchema};
use crate::names::TableName;
use crate::server::failure::MIGRATE;
use crate::server::sessions::Sessions;
use crate::statement::reply::Row;
use crate::statement::step::Step;

impl TableSchema {
    /// Creates the table unless it exists, and checks the table.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] if the user may not create the table, if another table has its name, or if it is of another
    /// version that this program cannot use.
    pub fn migrate<'a>(&'a self, sessions: &'a Sessions, table: &'a TableName) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let create = self.create(table);
            sessions.run(Step::new("migrate", &create).limit(MIGRATION).repeatable(), Params::Empty).await?;
            self.check(sessions, table).await
        })
    }

    /// Checks that the table exists and is as it should be.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`], saying what is wrong and what to do; of a wrong version, it names both.
    pub fn check<'a>(&'a self, sessions: &'a Sessions, table: &'a TableName) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.fault(sessions, table).await? {
                Some(Fault { why, .. }) => Err(Error::new(ErrorKind::Backend, CHECK).detail(why)),
                None => Ok(()),
            }
        })
    }

    /// What keeps programs from using the table, if anything does.
    pub(crate) async fn fault(&self, sessions: &Sessions, table: &TableName) -> Result<Option<Fault>> {
        // The text may quote what the server says of the table.
        let fault = |why: String, cure: String| {
            let why = sessions.connections.secrets().hide(&format!("{table}: {why}"));
            Ok(Some(Fault { why, cure }))
        };
        let migrate = || "leasehold migrate".to_owned();
        let named = || Params::Positional(vec![table.as_str().into()]);
        let found = sessions.run(Step::new(CHECK, TABLE).repeatable(), named()).await?;
        let Some(row) = found.rows.first() else {
            return fault(format!("there is no such table in the database, {HIDDEN}; {MIGRATE}"), migrate());
        };
        let (engine, comment) = (row.text(0), row.text(1));
        if !engine.eq_ignore_ascii_case("InnoDB") {
            let why = format!("its engine is {engine}, and only InnoDB locks rows and survives a crash; {MIGRATE}");
            return fault(why, format!("ALTER TABLE {table} ENGINE=InnoDB"));
        }
        if let Err(Fault { why, cure }) = self.can_use(&comment) {
            return fault(why, cure);
        }
        let columns = sessions.run(Step::new(CHECK, COLUMNS).repeatable(), named()).await?;
        let found: Vec<_> = columns.rows.iter().map(|row| (row.text(0), found_type(row), row.text(4))).collect();
        let has_key = found.iter().any(|(.., key)| key == "PRI");
        for column in self.columns {
            let Some((_, kind, key)) = found.iter().find(|(name, ..)| name.eq_ignore_ascii_case(column.name)) else {
                let cure = format!("ALTER TABLE {table} ADD COLUMN {}", column.definition());
                return fault(format!("the column {} is missing, {HIDDEN}; {MIGRATE}", column.name), cure);
            };
            if *kind != column.kind.to_string() {
                let why = format!("the column {} is {kind} and has to be {}; {MIGRATE}", column.name, column.kind);
                return fault(why, format!("ALTER TABLE {table} MODIFY COLUMN {}", column.definition()));
            }
            if self.primary_key.contains(&column.name) != (key == "PRI") {
                let key = self.primary_key.join(", ");
                let drop = if has_key { "DROP PRIMARY KEY, " } else { "" };
                let cure = format!("ALTER TABLE {table} {drop}ADD PRIMARY KEY ({key})");
                return fault(format!("the primary key has to be ({key}); {MIGRATE}"), cure);
            }
        }
        Ok(None)
    }
}

/// How long the creation of a table may take: it waits for the disk more often than other statements do.
const MIGRATION: Duration = Duration::from_secs(60);

/// The hint that a table may be hidden: a server shows tables and columns only to users who have a right to them.
const HIDDEN: &str =
    "or hidden from a user who lacks rights: GRANT SELECT, INSERT, UPDATE ON it, see \"Server requirements\"";

const CHECK: &str = "check the tables";

const TABLE: &str = "SELECT engine, table_comment FROM information_schema.tables \
                     WHERE table_schema = DATABASE() AND table_name = ?";

const COLUMNS: &str = "SELECT column_name, data_type, CAST(character_octet_length AS CHAR), \
                       CAST(datetime_precision AS CHAR), column_key FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?";

/// The type of a column of the table, in the form in which [`ColumnType`](super::table::ColumnType) displays itself.
fn found_type(row: &Row) -> String {
    let kind = row.text(1).to_ascii_lowercase();
    match kind.as_str() {
        "binary" | "varbinary" => format!("{kind}({})", row.text(2)),
        "datetime" | "timestamp" => format!("{kind}({})", row.text(3)),
        _ => kind,
    }
}

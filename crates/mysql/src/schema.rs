use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};
use mysql_async::{Params, Row};

use crate::refusal::MIGRATE;
use crate::{Sessions, Step, TableName};

/// What a table of ours looks like, to create it and to recognize it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// What the table's comment must be: backend and version of the layout.
    pub version: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// The columns of its primary key, and there is no other key.
    pub primary_key: &'static [&'static str],
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it may be NULL.
    pub optional: bool,
}

/// The types in use. Text types are not among them: every collation but the binary one merges different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `BINARY(n)`.
    Binary(u32),
    /// `VARBINARY(n)`.
    Bytes(u32),
    /// `BIGINT UNSIGNED`.
    Number,
    /// `BOOLEAN`.
    Flag,
    /// `DATETIME(6)`, in UTC.
    Moment,
}

impl Layout {
    /// The statement that creates it.
    pub fn create(&self, table: &TableName) -> String {
        let columns = self.columns.iter().map(|column| {
            let null = if column.optional { "NULL" } else { "NOT NULL" };
            format!("  {} {} {null},\n", column.name, column.kind.to_sql())
        });
        let columns: String = columns.collect();
        let key = self.primary_key.join(", ");
        let version = self.version;
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (\n{columns}  PRIMARY KEY ({key})\n) \
             ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='{version}'"
        )
    }

    /// Creates the table unless it is there, and checks it.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] if the user may not create it, or another table has its name.
    pub async fn migrate(&self, sessions: &Sessions, table: &TableName) -> Result<()> {
        let create = self.create(table);
        let step = Step::new("migrate", &create).limit(Duration::from_secs(30)).repeatable();
        sessions.run(step, Params::Empty).await?;
        self.check(sessions, table).await
    }

    /// Checks that the table is there and what it should be.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`], saying what is wrong and to run `leasehold migrate`.
    pub async fn check(&self, sessions: &Sessions, table: &TableName) -> Result<()> {
        let refuse =
            |why: String| Err(Error::new(ErrorKind::Backend, CHECK).detail(format!("{table}: {why}; {MIGRATE}")));
        let named = || Params::Positional(vec![table.as_str().into()]);
        let found = sessions.run(Step::new(CHECK, TABLE).repeatable(), named()).await?;
        let Some(row) = found.rows.first() else { return refuse("there is no such table in the database".into()) };
        let (engine, comment) = (text(row, 0), text(row, 1));
        if !engine.eq_ignore_ascii_case("InnoDB") {
            return refuse(format!("its engine is {engine}, and only InnoDB locks rows and survives a crash"));
        }
        let columns = sessions.run(Step::new(CHECK, COLUMNS).repeatable(), named()).await?;
        let found: Vec<_> = columns.rows.iter().map(|row| (text(row, 0), as_found(row), text(row, 4))).collect();
        for column in self.columns {
            let Some((_, kind, key)) = found.iter().find(|(name, ..)| name.eq_ignore_ascii_case(column.name)) else {
                return refuse(format!("the column {} is missing", column.name));
            };
            if *kind != column.kind.to_string() {
                return refuse(format!("the column {} is {kind} and has to be {}", column.name, column.kind));
            }
            if self.primary_key.contains(&column.name) != (key == "PRI") {
                return refuse(format!("the primary key has to be ({})", self.primary_key.join(", ")));
            }
        }
        if comment != self.version {
            return refuse(format!("its comment is {comment:?} and has to be {:?}", self.version));
        }
        Ok(())
    }
}

const CHECK: &str = "check the tables";

const TABLE: &str = "SELECT engine, table_comment FROM information_schema.tables \
                     WHERE table_schema = DATABASE() AND table_name = ?";

const COLUMNS: &str = "SELECT column_name, data_type, CAST(character_octet_length AS CHAR), \
                       CAST(datetime_precision AS CHAR), column_key FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?";

fn text(row: &Row, index: usize) -> String {
    row.get_opt::<Option<String>, usize>(index).and_then(Result::ok).flatten().unwrap_or_default()
}

/// The type of a column in the words of [`Kind`].
fn as_found(row: &Row) -> String {
    let kind = text(row, 1).to_ascii_lowercase();
    match kind.as_str() {
        "binary" | "varbinary" => format!("{kind}({})", text(row, 2)),
        "datetime" | "timestamp" => format!("{kind}({})", text(row, 3)),
        _ => kind,
    }
}

impl Kind {
    fn to_sql(self) -> String {
        match self {
            Self::Number => "BIGINT UNSIGNED".into(),
            Self::Flag => "BOOLEAN".into(),
            _ => self.to_string().to_ascii_uppercase(),
        }
    }
}

/// As the server describes it.
impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Binary(length) => write!(f, "binary({length})"),
            Self::Bytes(length) => write!(f, "varbinary({length})"),
            Self::Number => f.write_str("bigint"),
            Self::Flag => f.write_str("tinyint"),
            Self::Moment => f.write_str("datetime(6)"),
        }
    }
}

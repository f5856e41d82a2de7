use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};
use mysql_async::{Params, Row};

use crate::refusal::MIGRATE;
use crate::{Sessions, Step, TableName};

/// What a table of ours looks like, to create it and to recognize it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Whose table it is: the beginning of its comment, before the version.
    pub name: &'static str,
    /// What made each version out of the one before it, beginning with version 2.
    pub changes: &'static [Change],
    /// Its columns.
    pub columns: &'static [Column],
    /// The columns of its primary key, and there is no other key.
    pub primary_key: &'static [&'static str],
}

/// How a table of one version becomes one of the next.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// What `ALTER TABLE` is told, without the name and the comment.
    pub alter: &'static str,
    /// The oldest version whose programs can go on with the new one.
    pub readable_since: u32,
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
        let version = self.comment(self.version());
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (\n{columns}  PRIMARY KEY ({key})\n) \
             ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='{version}'"
        )
    }

    /// Creates the table unless it is there, brings one of an older version up to this one, and checks it.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] if the user may not create or alter it, another table has its name, or it is of a newer
    /// version that this program cannot go on with.
    pub async fn migrate(&self, sessions: &Sessions, table: &TableName) -> Result<()> {
        let create = self.create(table);
        sessions.run(migration(&create).repeatable(), Params::Empty).await?;
        let mut version = self.version_of(sessions, table).await?;
        while let Some(change) = version.and_then(|version| self.changes.get(version.number.checked_sub(1)? as usize)) {
            let next = version.map_or(1, |version| version.number + 1);
            // One statement, so that the table never has the one without the other.
            let alter = format!("ALTER TABLE {table} {}, COMMENT='{}'", change.alter, self.comment(next));
            let altered = sessions.run(migration(&alter), Params::Empty).await;
            let before = std::mem::replace(&mut version, self.version_of(sessions, table).await?);
            // Another program may have done it meanwhile.
            if version == before {
                altered?;
            }
        }
        self.check(sessions, table).await
    }

    /// Checks that the table is there and what it should be.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`], saying what is wrong, with both versions if it is that, and what to do.
    pub async fn check(&self, sessions: &Sessions, table: &TableName) -> Result<()> {
        // It may quote what the server says of the table.
        let refuse = |why: String| {
            let why = sessions.connections().secrets().hide(&format!("{table}: {why}"));
            Err(Error::new(ErrorKind::Backend, CHECK).detail(why))
        };
        let named = || Params::Positional(vec![table.as_str().into()]);
        let found = sessions.run(Step::new(CHECK, TABLE).repeatable(), named()).await?;
        let Some(row) = found.rows.first() else {
            return refuse(format!("there is no such table in the database, {HIDDEN}; {MIGRATE}"));
        };
        let (engine, comment) = (text(row, 0), text(row, 1));
        if !engine.eq_ignore_ascii_case("InnoDB") {
            return refuse(format!(
                "its engine is {engine}, and only InnoDB locks rows and survives a crash; {MIGRATE}"
            ));
        }
        if let Err(why) = self.can_use(&comment) {
            return refuse(why);
        }
        let columns = sessions.run(Step::new(CHECK, COLUMNS).repeatable(), named()).await?;
        let found: Vec<_> = columns.rows.iter().map(|row| (text(row, 0), as_found(row), text(row, 4))).collect();
        for column in self.columns {
            let Some((_, kind, key)) = found.iter().find(|(name, ..)| name.eq_ignore_ascii_case(column.name)) else {
                return refuse(format!("the column {} is missing, {HIDDEN}; {MIGRATE}", column.name));
            };
            if *kind != column.kind.to_string() {
                return refuse(format!(
                    "the column {} is {kind} and has to be {}; {MIGRATE}",
                    column.name, column.kind
                ));
            }
            if self.primary_key.contains(&column.name) != (key == "PRI") {
                return refuse(format!("the primary key has to be ({}); {MIGRATE}", self.primary_key.join(", ")));
            }
        }
        Ok(())
    }

    /// Whether a program with this layout may use a table with this comment; if not, why, and what to do.
    fn can_use(&self, comment: &str) -> Result<(), String> {
        let ours = self.version();
        match self.read(comment) {
            None => Err(format!("its comment is {comment:?} and has to be {:?}; {MIGRATE}", self.comment(ours))),
            Some(found) if found.number < ours => {
                Err(format!("it is of version {}, and this program needs version {ours}; {MIGRATE}", found.number))
            }
            Some(found) if found.readable_since > ours => Err(format!(
                "it is of version {}, which programs of version {} and later know, and this program is of version \
                 {ours}: run a newer one",
                found.number, found.readable_since
            )),
            Some(_) => Ok(()),
        }
    }

    /// The newest version that this program knows.
    fn version(&self) -> u32 {
        1 + u32::try_from(self.changes.len()).unwrap_or(u32::MAX - 1)
    }

    /// What says in the table whose it is, of which version, and who may use it.
    fn comment(&self, version: u32) -> String {
        let made_by = version.checked_sub(2).and_then(|index| self.changes.get(index as usize));
        let since = made_by.map_or(version, |change| change.readable_since);
        let name = self.name;
        if since == version { format!("{name} {version}") } else { format!("{name} {version} since {since}") }
    }

    fn read(&self, comment: &str) -> Option<Version> {
        let (number, since) = match comment.strip_prefix(self.name)?.strip_prefix(' ')?.split_once(" since ") {
            Some((number, since)) => (number, since),
            None => (&comment[self.name.len() + 1..], &comment[self.name.len() + 1..]),
        };
        Some(Version { number: number.parse().ok()?, readable_since: since.parse().ok()? })
    }

    async fn version_of(&self, sessions: &Sessions, table: &TableName) -> Result<Option<Version>> {
        let named = Params::Positional(vec![table.as_str().into()]);
        let found = sessions.run(Step::new(CHECK, TABLE).repeatable(), named).await?;
        Ok(found.rows.first().and_then(|row| self.read(&text(row, 1))))
    }
}

/// Of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    number: u32,
    readable_since: u32,
}

fn migration(statement: &str) -> Step<'_> {
    Step::new("migrate", statement).limit(MIGRATION)
}

/// How long a change of a table may take: it may be copied.
const MIGRATION: Duration = Duration::from_secs(600);

/// A server shows tables and columns only to who has a right to them.
const HIDDEN: &str =
    "or hidden from a user who lacks rights: GRANT SELECT, INSERT, UPDATE ON it, see \"Server requirements\"";

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

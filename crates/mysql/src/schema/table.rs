use crate::names::TableName;
use crate::server::failure::MIGRATE;

/// The schema of a table: enough to create the table, and to recognize it.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// The name of the schema, with which the comment of the table begins. The version follows.
    pub name: &'static str,
    /// The changes that made each version out of the one before it, beginning with version 2.
    pub changes: &'static [SchemaChange],
    /// The columns.
    pub columns: &'static [Column],
    /// The columns of the primary key. There is no other index.
    pub primary_key: &'static [&'static str],
}

/// The change of a table from one version to the next.
#[derive(Clone, Copy, Debug)]
pub struct SchemaChange {
    /// The rest of the `ALTER TABLE` statement after the name of the table, without the comment.
    pub alter: &'static str,
    /// The oldest version whose programs can use a table of the new version.
    pub readable_since: u32,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name of the column.
    pub name: &'static str,
    /// The type of the column.
    pub kind: ColumnType,
    /// Whether the column may be NULL.
    pub optional: bool,
}

/// The type of a column. Text types are missing on purpose: every collation but the binary one merges different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
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

impl TableSchema {
    /// The statement that creates the table.
    pub(crate) fn create(&self, table: &TableName) -> String {
        let columns: Vec<_> = self.columns.iter().map(|column| format!("  {},\n", column.definition())).collect();
        let columns = columns.concat();
        let key = self.primary_key.join(", ");
        let version = self.comment(self.version());
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (\n{columns}  PRIMARY KEY ({key})\n) \
             ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='{version}'"
        )
    }

    /// Checks that a program with this schema may use a table with this comment. If not, the error says why, and what to
    /// do.
    pub(super) fn can_use(&self, comment: &str) -> Result<(), String> {
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

    /// The version of this schema, the newest that this program knows.
    fn version(&self) -> u32 {
        1 + u32::try_from(self.changes.len()).unwrap_or(u32::MAX - 1)
    }

    /// The comment of a table of this version: the name of the schema, the version, and the oldest version whose programs
    /// may use the table.
    pub(super) fn comment(&self, version: u32) -> String {
        let made_by = version.checked_sub(2).and_then(|index| self.changes.get(index as usize));
        let since = made_by.map_or(version, |change| change.readable_since);
        let name = self.name;
        if since == version { format!("{name} {version}") } else { format!("{name} {version} since {since}") }
    }

    /// The version of a table, from its comment. `None`: the table is none of this schema.
    pub(super) fn read(&self, comment: &str) -> Option<Version> {
        let (number, since) = match comment.strip_prefix(self.name)?.strip_prefix(' ')?.split_once(" since ") {
            Some((number, since)) => (number, since),
            None => (&comment[self.name.len() + 1..], &comment[self.name.len() + 1..]),
        };
        Some(Version { number: number.parse().ok()?, readable_since: since.parse().ok()? })
    }
}

/// The version of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) number: u32,
    pub(super) readable_since: u32,
}

impl Column {
    /// Its name and type, as statements that make it have them.
    pub(super) fn definition(&self) -> String {
        let null = if self.optional { "NULL" } else { "NOT NULL" };
        format!("{} {} {null}", self.name, self.kind.to_sql())
    }
}

impl ColumnType {
    fn to_sql(self) -> String {
        match self {
            Self::Number => "BIGINT UNSIGNED".into(),
            Self::Flag => "BOOLEAN".into(),
            _ => self.to_string().to_ascii_uppercase(),
        }
    }
}

/// The type as the server describes it.
impl std::fmt::Display for ColumnType {
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

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGES: [SchemaChange; 2] = [
        SchemaChange { alter: "ADD COLUMN two BOOLEAN", readable_since: 1 },
        SchemaChange { alter: "ADD COLUMN three BOOLEAN", readable_since: 3 },
    ];

    fn schema(changes: &'static [SchemaChange]) -> TableSchema {
        const COLUMNS: [Column; 5] = [
            Column { name: "name", kind: ColumnType::Bytes(9), optional: false },
            Column { name: "owner", kind: ColumnType::Binary(16), optional: true },
            Column { name: "epoch", kind: ColumnType::Number, optional: false },
            Column { name: "waits", kind: ColumnType::Flag, optional: false },
            Column { name: "ends", kind: ColumnType::Moment, optional: false },
        ];
        TableSchema { name: "a table", changes, columns: &COLUMNS, primary_key: &["name", "owner"] }
    }

    #[test]
    fn a_table_is_created_with_its_columns_its_key_and_its_version() {
        let expected = "CREATE TABLE IF NOT EXISTS `t` (\n  name VARBINARY(9) NOT NULL,\n  owner BINARY(16) NULL,\n  \
                        epoch BIGINT UNSIGNED NOT NULL,\n  waits BOOLEAN NOT NULL,\n  ends DATETIME(6) NOT NULL,\n  \
                        PRIMARY KEY (name, owner)\n) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='a table 1'";
        assert_eq!(schema(&[]).create(&TableName::new("t").unwrap()), expected);
    }

    #[test]
    fn the_comment_says_which_programs_may_use_a_table() {
        let [one, two, three] = [schema(&[]), schema(&CHANGES[..1]), schema(&CHANGES)];
        assert_eq!(three.comment(1), "a table 1");
        assert_eq!(three.comment(2), "a table 2 since 1");
        assert_eq!(three.comment(3), "a table 3");
        assert_eq!(three.read("a table 2 since 1"), Some(Version { number: 2, readable_since: 1 }));
        assert_eq!(three.read("a table 3"), Some(Version { number: 3, readable_since: 3 }));
        for odd in ["", "a table", "a table x", "a table 2 since x", "another table 1", "a tables 1"] {
            assert_eq!(three.read(odd), None, "{odd}");
            assert!(three.can_use(odd).unwrap_err().contains("its comment is"), "{odd}");
        }
        for (program, comment, refused) in [
            (&one, "a table 1", None),
            (&one, "a table 2 since 1", None),
            (&two, "a table 2 since 1", None),
            (&three, "a table 3", None),
            (&two, "a table 1", Some("it is of version 1, and this program needs version 2")),
            (&two, "a table 3", Some("run a newer one")),
        ] {
            let answer = program.can_use(comment);
            assert_eq!(answer.is_ok(), refused.is_none(), "{comment}: {answer:?}");
            assert!(answer.err().unwrap_or_default().contains(refused.unwrap_or_default()), "{comment}");
        }
    }
}

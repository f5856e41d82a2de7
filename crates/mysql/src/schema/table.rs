use crate::names::TableName;
use crate::server::failure::MIGRATE;

/// The schema of a table: enough to create the table, and to recognize it.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// The name of the schema, with which the comment of the table begins. The version follows.
    pub name: &'static str,
    /// The version of the schema, the newest that this program knows.
    pub version: u32,
    /// The columns.
    pub columns: &'static [Column],
    /// The columns of the primary key. There is no other index.
    pub primary_key: &'static [&'static str],
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
        let comment = self.comment();
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (\n{columns}  PRIMARY KEY ({key})\n) \
             ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='{comment}'"
        )
    }

    /// Checks that a program with this schema may use a table with this comment. If not, the error says why, and what to
    /// do.
    pub(super) fn can_use(&self, comment: &str) -> Result<(), Fault> {
        let ours = self.version;
        let fault = |why, cure: &str| Err(Fault { why, cure: cure.to_owned() });
        match self.read(comment) {
            None => fault(
                format!("its comment is {comment:?} and has to be {:?}; {MIGRATE}", self.comment()),
                "leasehold migrate",
            ),
            Some((found, _)) if found < ours => fault(
                format!(
                    "it is of version {found}, and this program needs version {ours}: run a program of that version, or drop the \
                     table while nobody uses it, then run `leasehold migrate` or call `migrate()`"
                ),
                "install the leasehold of that version, or drop the table while nobody uses it and migrate",
            ),
            Some((found, since)) if since > ours => fault(
                format!(
                    "it is of version {found}, which programs of version {since} and later know, and this program is of version \
                     {ours}: run a newer one"
                ),
                "install a newer leasehold",
            ),
            Some(_) => Ok(()),
        }
    }

    /// The comment of a table of this version: the name of the schema, and the version.
    fn comment(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The version of a table, from its comment, and the oldest version whose programs may use it, which may follow that of a newer
    /// one behind ` since `. `None`: the table is none of this schema.
    fn read(&self, comment: &str) -> Option<(u32, u32)> {
        let version = comment.strip_prefix(self.name)?.strip_prefix(' ')?;
        let (number, since) = version.split_once(" since ").unwrap_or((version, version));
        Some((number.parse().ok()?, since.parse().ok()?))
    }
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

/// Why a table cannot be used, and the statement or command that ends that.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) why: String,
    pub(crate) cure: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comment_says_which_programs_may_use_a_table() {
        let program = TableSchema { name: "a table", version: 3, columns: &[], primary_key: &[] };
        for odd in ["", "a table", "a table x", "a table 2 since x", "another table 1", "a tables 1"] {
            assert!(program.can_use(odd).unwrap_err().why.contains("its comment is"), "{odd}");
        }
        for (comment, refused) in [
            ("a table 3", None),
            ("a table 3 since 1", None),
            ("a table 4 since 3", None),
            ("a table 1", Some("it is of version 1, and this program needs version 3")),
            ("a table 2 since 1", Some("it is of version 2, and this program needs version 3")),
            ("a table 4", Some("run a newer one")),
            ("a table 5 since 4", Some("run a newer one")),
        ] {
            let answer = program.can_use(comment);
            assert_eq!(answer.is_ok(), refused.is_none(), "{comment}: {answer:?}");
            assert!(answer.is_ok() || answer.unwrap_err().why.contains(refused.unwrap()), "{comment}");
        }
    }
}

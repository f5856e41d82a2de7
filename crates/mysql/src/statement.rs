use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};
use mysql_async::Row;
use mysql_async::prelude::FromValue;

use crate::TableName;

/// The text of an SQL file, without its comments, for these tables: `{table}` becomes the name in backticks.
pub fn statement(source: &str, tables: &[(&str, &TableName)]) -> String {
    let lines = source.lines().map(str::trim).filter(|line| !line.starts_with("--") && !line.is_empty());
    let mut text = lines.collect::<Vec<_>>().join(" ");
    for (placeholder, table) in tables {
        text = text.replace(&format!("{{{placeholder}}}"), &table.to_string());
    }
    text
}

/// A type that has the statements of a crate, each by the name of its file in the folder `sql` beside this one, and
/// `all` of them, so that a test can miss none.
#[macro_export]
macro_rules! statements {
    ($(#[$about:meta])* $name:ident($($table:ident),+): $($statement:ident),+ $(,)?) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $(pub(crate) $statement: String),+
        }

        impl $name {
            pub(crate) fn new($($table: &$crate::TableName),+) -> Self {
                let of = |source| $crate::statement(source, &[$((stringify!($table), $table)),+]);
                Self { $($statement: of(include_str!(concat!("sql/", stringify!($statement), ".sql")))),+ }
            }

            #[cfg(test)]
            pub(crate) fn all(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($statement), self.$statement.as_str())),+]
            }
        }
    };
}

/// Reads the columns of a row in order. What is not of the expected type is an error and never a panic.
#[derive(Debug)]
pub struct Columns<'r> {
    row: &'r Row,
    next: usize,
    operation: &'static str,
}

impl<'r> Columns<'r> {
    /// From the first column on.
    pub fn of(row: &'r Row, operation: &'static str) -> Self {
        Self { row, next: 0, operation }
    }

    /// The next one.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] if there is none, or of another type.
    pub fn take<T: FromValue>(&mut self) -> Result<T> {
        self.next += 1;
        let value = self.row.get_opt::<T, usize>(self.next - 1);
        value.and_then(std::result::Result::ok).ok_or_else(|| {
            let why = format!("column {} of the server's answer is not what it should be", self.next);
            Error::new(ErrorKind::Backend, self.operation).detail(why)
        })
    }

    /// The next one, as text; bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn text(&mut self) -> Result<Option<String>> {
        let bytes: Option<Vec<u8>> = self.take()?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The next one, a number of microseconds; below zero is none at all.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn micros(&mut self) -> Result<Duration> {
        let micros: i64 = self.take()?;
        Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_tables_come() {
        let table = TableName::new("locks").unwrap();
        let source = "-- It's said: twice.\nUPDATE {table}\n  SET a = :a\n\nWHERE b = {other}\n";
        assert_eq!(statement(source, &[("table", &table)]), "UPDATE `locks` SET a = :a WHERE b = {other}");
    }
}

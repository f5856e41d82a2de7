use crate::names::TableName;

/// The server's clock in the unit of epochs: sixteenths of a millisecond since 1970.
const CLOCK: &str = "CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) * 2 DIV 125 AS UNSIGNED)";

/// The text of an SQL file on one line, without comments, in which `{clock}` is replaced by the server's clock in the unit
/// of epochs, and `{placeholder}` of each pair by the name of its table in backticks.
pub fn statement(source: &str, tables: &[(&str, &TableName)]) -> String {
    let lines = source.lines().map(str::trim).filter(|line| !line.starts_with("--") && !line.is_empty());
    let mut text = lines.collect::<Vec<_>>().join(" ").replace("{clock}", CLOCK);
    for (placeholder, table) in tables {
        text = text.replace(&format!("{{{placeholder}}}"), &table.to_string());
    }
    text
}

/// Defines a type whose fields are the statements of a crate: each has the name of its file in the folder `sql` beside
/// the file that invokes the macro. For tests it also has `all`, the statements with their names, so that none is missed.
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

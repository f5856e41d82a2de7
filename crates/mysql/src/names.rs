use std::fmt;
use std::sync::Arc;

use leasehold_core::{Error, ErrorKind, Result};

/// The name of a table: 1 to 64 letters, digits and underscores. `Display` shows the name in backticks.
///
/// The name of a table cannot be a parameter of a statement, so no other character may ever come between the backticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName(Arc<str>);

impl TableName {
    /// Checks the name of a table.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for anything else than `[A-Za-z0-9_]{1,64}`.
    pub fn new(name: &str) -> Result<Self> {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if plain && (1..=64).contains(&name.len()) {
            return Ok(Self(name.into()));
        }
        let why = format!("{name:?} is no name for a table here: it takes 1 to 64 of A-Z, a-z, 0-9 and _");
        Err(Error::new(ErrorKind::InvalidOptions, "check the name of the table").detail(why))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_are_letters_digits_and_underscores() {
        for bad in ["", "a`b", "a'b", "a b", "a.b", "a;drop table b", "ä", "a\0", &"x".repeat(65)] {
            assert_eq!(TableName::new(bad).unwrap_err().kind(), ErrorKind::InvalidOptions, "{bad:?}");
        }
        for good in ["locks", "A_1", &"x".repeat(64)] {
            assert_eq!(TableName::new(good).unwrap().to_string(), format!("`{good}`"));
        }
    }
}

use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};
use mysql_async::Value;
use mysql_async::prelude::FromValue;

/// The server's answer to one statement.
#[derive(Debug)]
pub struct Reply {
    /// The rows of a query.
    pub rows: Vec<Row>,
    /// How many rows the statement changed, or, with the driver's option `client_found_rows`, matched.
    pub affected: u64,
    /// The number that the statement gave to `LAST_INSERT_ID(…)`; zero if it gave none.
    pub id: u64,
    /// Whether the statement was sent twice, so that the first sending may have been carried out as well.
    pub repeated: bool,
}

/// One row of an answer.
#[derive(Clone, Debug)]
pub struct Row {
    values: Vec<Value>,
}

impl Row {
    /// The values of the columns, in the order of the statement.
    pub(crate) fn into_values(self) -> Vec<Value> {
        self.values
    }

    /// The column at `index` as text; empty if it is NULL, missing, or no text.
    pub(crate) fn text(&self, index: usize) -> String {
        let text = self.values.get(index).map(|value| Option::<String>::from_value_opt(value.clone()));
        text.and_then(std::result::Result::ok).flatten().unwrap_or_default()
    }
}

impl From<mysql_async::Row> for Row {
    fn from(row: mysql_async::Row) -> Self {
        Self { values: row.unwrap_raw().into_iter().flatten().collect() }
    }
}

/// Reads the columns of a row from the first to the last. A value of another type than expected is an error, and never
/// a panic.
#[derive(Debug)]
pub struct Columns<'r> {
    row: &'r Row,
    next: usize,
    operation: &'static str,
}

impl<'r> Columns<'r> {
    /// Begins at the first column. Errors name `operation`.
    pub fn of(row: &'r Row, operation: &'static str) -> Self {
        Self { row, next: 0, operation }
    }

    /// The next column: bytes, a number that is not negative, or either as an option, which is `None` for NULL.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] if there is no further column, or its value is of another type.
    pub fn get<T: FromValue>(&mut self) -> Result<T> {
        self.next += 1;
        let value = self.row.values.get(self.next - 1).map(|value| T::from_value_opt(value.clone()));
        value.and_then(std::result::Result::ok).ok_or_else(|| {
            let why = format!("column {} of the server's answer is not what it should be", self.next);
            Error::new(ErrorKind::Backend, self.operation).detail(why)
        })
    }

    /// The next column, as text in which bytes that are no UTF-8 are replaced; `None` if it is NULL.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] if there is no further column, or its value is neither bytes nor NULL.
    pub fn text(&mut self) -> Result<Option<String>> {
        let bytes: Option<Vec<u8>> = self.get()?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The next column, as a number of microseconds; a negative number counts as zero.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] if there is no further column, or its value is no number.
    pub fn micros(&mut self) -> Result<Duration> {
        let micros: i64 = self.get()?;
        Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_testkit::corpus;

    #[test]
    fn whatever_the_driver_gives_for_a_column_it_is_read_or_refused() {
        corpus(include_str!("../../corpus/values.txt"), |bytes| {
            let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            let [year, month, day, hour, minute, second, ..] = number.to_be_bytes();
            let micros = u32::try_from(number >> 32).unwrap();
            let values = [
                Value::NULL,
                Value::Bytes(bytes.to_vec()),
                Value::Int(number.cast_signed()),
                Value::UInt(number),
                Value::Float(f32::from_bits(micros)),
                Value::Double(f64::from_bits(number)),
                Value::Date(u16::from(year), month, day, hour, minute, second, micros),
                Value::Time(hour > 9, micros, hour, minute, second, micros),
            ];
            for value in values {
                let row = Row { values: vec![value] };
                let columns = || Columns::of(&row, "test");
                let kinds = [
                    columns().get::<Vec<u8>>().err(),
                    columns().get::<Option<Vec<u8>>>().err(),
                    columns().get::<u64>().err(),
                    columns().text().err(),
                    columns().micros().err(),
                ];
                let _ = row.text(0);
                assert!(kinds.into_iter().flatten().all(|error| error.kind() == ErrorKind::Backend), "{row:?}");
            }
        });
    }

    #[test]
    fn a_negative_time_is_none_and_what_a_row_has_not_is_an_error() {
        let row = Row { values: vec![Value::Int(-1)] };
        let mut columns = Columns::of(&row, "test");
        assert_eq!(columns.micros().unwrap(), Duration::ZERO);
        assert_eq!(columns.get::<u64>().unwrap_err().kind(), ErrorKind::Backend);
    }
}

use mysql_async::Value;

/// A row that a batch statement is about.
#[derive(Clone, Debug)]
pub struct BatchRow {
    /// The values of the columns by which the row is found, in the order of the statement.
    pub key: Vec<Value>,
    /// The lease that a renewal gives to the row, in microseconds.
    pub micros: Option<Value>,
}

impl BatchRow {
    /// A row that is found by these columns, and gets no lease.
    pub fn of<const N: usize>(key: [Value; N]) -> Self {
        Self { key: key.into(), micros: None }
    }
}

/// A statement about all of these rows, and its positional parameters, from a text with slots in braces:
///
/// - `{any name = ? AND owner = ?}`, or `{any name = ?}`, becomes this condition of any of the rows. Every row has a
///   condition of its own on the columns of the primary key, because servers look these up one by one, however few
///   there are. A list of tuples would not do: `MariaDB` reads, and locks, the whole table when it holds a single one.
/// - `{micros of CONCAT(name, owner)}` becomes the lease of the row with this key.
///
/// The number of rows is rounded up to a power of two by repeating the last row: so there are few different texts, and
/// each stays prepared in the server.
pub fn batch(text: &str, rows: &[BatchRow]) -> (String, Vec<Value>) {
    let count = rows.len().next_power_of_two();
    let rows: Vec<&BatchRow> = (0..count).filter_map(|index| rows.get(index).or(rows.last())).collect();
    let (mut made, mut params) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((before, (slot, behind))) =
        rest.split_once('{').and_then(|(before, slot)| Some((before, slot.split_once('}')?)))
    {
        made.push_str(before);
        if let Some(condition) = slot.strip_prefix("any ") {
            made.push_str(&vec![format!("({condition})"); rows.len()].join(" OR "));
            let marks = condition.matches('?').count();
            params.extend(rows.iter().flat_map(|row| row.key.iter().take(marks).cloned()));
        } else if let Some(key) = slot.strip_prefix("micros of ") {
            made.push_str(&leases(key, &rows, &mut params));
        }
        rest = behind;
    }
    made.push_str(rest);
    (made, params)
}

/// An SQL expression for the lease of a row: one parameter if all rows get the same lease, else a lookup by the key.
fn leases(key: &str, rows: &[&BatchRow], params: &mut Vec<Value>) -> String {
    let micros: Vec<Value> = rows.iter().filter_map(|row| row.micros.clone()).collect();
    if micros.windows(2).all(|pair| pair[0] == pair[1]) {
        params.extend(micros.into_iter().take(1));
        return "?".into();
    }
    let marks = vec!["?"; rows.len()].join(", ");
    params.extend(rows.iter().map(|row| Value::Bytes(joined(&row.key))));
    params.extend(micros);
    format!("ELT(FIELD({key}, {marks}), {marks})")
}

/// The columns of a key one behind the other, as `CONCAT` joins them.
fn joined(key: &[Value]) -> Vec<u8> {
    key.iter().flat_map(|value| if let Value::Bytes(bytes) = value { bytes.as_slice() } else { &[] }).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "SET l = {micros of CONCAT(n, o)} WHERE ({any n = ? AND o = ?}) AND a";

    fn row(name: &str, micros: u64) -> BatchRow {
        BatchRow { micros: Some(Value::UInt(micros)), ..BatchRow::of([name.into(), "o".into()]) }
    }

    #[test]
    fn the_number_of_rows_is_rounded_up_to_a_power_of_two() {
        for (rows, conditions) in [(1, 1), (2, 2), (3, 4), (100, 128), (128, 128)] {
            let rows: Vec<_> = (0..rows).map(|number: u64| row(&number.to_string(), 1)).collect();
            let (text, params) = batch(TEXT, &rows);
            assert_eq!(text.matches("(n = ? AND o = ?)").count(), conditions);
            assert_eq!(params.len(), 1 + 2 * conditions);
        }
    }

    #[test]
    fn equal_leases_are_one_parameter_and_different_ones_a_lookup_by_key() {
        let (text, params) = batch(TEXT, &[row("a", 7), row("b", 7)]);
        assert_eq!(text, "SET l = ? WHERE ((n = ? AND o = ?) OR (n = ? AND o = ?)) AND a");
        assert_eq!(params, [Value::UInt(7), "a".into(), "o".into(), "b".into(), "o".into()]);
        let (text, params) = batch(TEXT, &[row("a", 7), row("b", 8)]);
        assert!(text.starts_with("SET l = ELT(FIELD(CONCAT(n, o), ?, ?), ?, ?) WHERE (("), "{text}");
        assert_eq!(params[..4], ["ao".into(), "bo".into(), Value::UInt(7), Value::UInt(8)]);
    }

    #[test]
    fn a_text_without_slots_is_unchanged() {
        assert_eq!(batch("SELECT 1", &[row("a", 1)]), ("SELECT 1".into(), Vec::new()));
    }
}

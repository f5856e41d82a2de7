use mysql_async::Value;

/// A row that a statement is about.
#[derive(Clone, Debug)]
pub struct Target {
    /// What the row is found by, column by column.
    pub identity: Vec<Value>,
    /// The lease to give it.
    pub micros: Option<Value>,
}

impl Target {
    /// One that is found by these columns.
    pub fn of<const N: usize>(identity: [Value; N]) -> Self {
        Self { identity: identity.into(), micros: None }
    }
}

/// A statement about each of these rows, from a text with slots in braces, and its positional parameters:
///
/// - `{any name = ? AND owner = ?}`, or `{any name = ?}`: this of any of the rows. Every row is a condition of its own on the columns of the
///   key, because servers look these up one by one, however few there are. Of a list of tuples MariaDB makes nothing
///   when it holds a single one: it reads, and locks, the whole table.
/// - `{micros of CONCAT(name, owner)}`: the lease of the row whose identity this is.
///
/// Rows are rounded up to a power of two by repeating the last: few different texts, so that each stays prepared.
pub fn each(text: &str, rows: &[Target]) -> (String, Vec<Value>) {
    let count = rows.len().next_power_of_two();
    let rows: Vec<&Target> = (0..count).filter_map(|index| rows.get(index).or(rows.last())).collect();
    let (mut made, mut params) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((before, (slot, behind))) =
        rest.split_once('{').and_then(|(before, slot)| Some((before, slot.split_once('}')?)))
    {
        made.push_str(before);
        if let Some(condition) = slot.strip_prefix("any ") {
            made.push_str(&vec![format!("({condition})"); rows.len()].join(" OR "));
            let marks = condition.matches('?').count();
            params.extend(rows.iter().flat_map(|row| row.identity.iter().take(marks).cloned()));
        } else if let Some(identity) = slot.strip_prefix("micros of ") {
            made.push_str(&leases(identity, &rows, &mut params));
        }
        rest = behind;
    }
    made.push_str(rest);
    (made, params)
}

/// The lease of each row, as an expression: the one that all of them have, or each row's own.
fn leases(identity: &str, rows: &[&Target], params: &mut Vec<Value>) -> String {
    let micros: Vec<Value> = rows.iter().filter_map(|row| row.micros.clone()).collect();
    if micros.windows(2).all(|pair| pair[0] == pair[1]) {
        params.extend(micros.into_iter().take(1));
        return "?".into();
    }
    let marks = vec!["?"; rows.len()].join(", ");
    params.extend(rows.iter().map(|row| Value::Bytes(joined(&row.identity))));
    params.extend(micros);
    format!("ELT(FIELD({identity}, {marks}), {marks})")
}

/// The columns one behind the other, as `CONCAT` has them.
fn joined(identity: &[Value]) -> Vec<u8> {
    identity
        .iter()
        .flat_map(|value| if let Value::Bytes(bytes) = value { bytes.as_slice() } else { &[] })
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "SET l = {micros of CONCAT(n, o)} WHERE ({any n = ? AND o = ?}) AND a";

    fn row(name: &str, micros: u64) -> Target {
        Target { micros: Some(Value::UInt(micros)), ..Target::of([name.into(), "o".into()]) }
    }

    #[test]
    fn batches_come_in_few_sizes() {
        for (rows, conditions) in [(1, 1), (2, 2), (3, 4), (100, 128), (128, 128)] {
            let rows: Vec<_> = (0..rows).map(|number: u64| row(&number.to_string(), 1)).collect();
            let (text, params) = each(TEXT, &rows);
            assert_eq!(text.matches("(n = ? AND o = ?)").count(), conditions);
            assert_eq!(params.len(), 1 + 2 * conditions);
        }
    }

    #[test]
    fn one_lease_for_all_is_said_once_and_others_row_by_row() {
        let (text, params) = each(TEXT, &[row("a", 7), row("b", 7)]);
        assert_eq!(text, "SET l = ? WHERE ((n = ? AND o = ?) OR (n = ? AND o = ?)) AND a");
        assert_eq!(params, [Value::UInt(7), "a".into(), "o".into(), "b".into(), "o".into()]);
        let (text, params) = each(TEXT, &[row("a", 7), row("b", 8)]);
        assert!(text.starts_with("SET l = ELT(FIELD(CONCAT(n, o), ?, ?), ?, ?) WHERE (("), "{text}");
        assert_eq!(params[..4], ["ao".into(), "bo".into(), Value::UInt(7), Value::UInt(8)]);
    }

    #[test]
    fn a_text_without_slots_stays_as_it_is() {
        assert_eq!(each("SELECT 1", &[row("a", 1)]), ("SELECT 1".into(), Vec::new()));
    }
}

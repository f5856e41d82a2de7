use mysql_async::Value;

/// A statement about all rows with these primary keys, and its positional parameters, from a text with slots in braces.
/// `leases` has the lease for each row, in microseconds, or is empty if the text has no slot for it.
///
/// - `{any name = ? AND owner = ?}`, or `{any name = ?}`, becomes this condition of any of the rows. Every row has a
///   condition of its own on the columns of the primary key, because servers look these up one by one, however few
///   there are. A list of tuples would not do: `MariaDB` reads, and locks, the whole table when it holds a single one.
/// - `{micros of CONCAT(name, owner)}` becomes the lease of the row with this key.
///
/// The number of rows is rounded up to a power of two by repeating the last row: so there are few different texts, and
/// each stays prepared in the server.
pub fn batch(text: &str, keys: &[Vec<Value>], leases: &[Value]) -> (String, Vec<Value>) {
    let (keys, leases) = (padded(keys), padded(leases));
    let (mut made, mut params) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((before, (slot, behind))) =
        rest.split_once('{').and_then(|(before, slot)| Some((before, slot.split_once('}')?)))
    {
        made.push_str(before);
        if let Some(condition) = slot.strip_prefix("any ") {
            made.push_str(&vec![format!("({condition})"); keys.len()].join(" OR "));
            let marks = condition.matches('?').count();
            params.extend(keys.iter().flat_map(|key| key.iter().take(marks).cloned()));
        } else if let Some(key) = slot.strip_prefix("micros of ") {
            made.push_str(&lease_of(key, &keys, &leases, &mut params));
        }
        rest = behind;
    }
    made.push_str(rest);
    (made, params)
}

/// As many as the next power of two, by repeating the last.
fn padded<T>(items: &[T]) -> Vec<&T> {
    let count = items.len().next_power_of_two();
    (0..count).filter_map(|index| items.get(index).or(items.last())).collect()
}

/// An SQL expression for the lease of a row: one parameter if all rows get the same lease, else a lookup by the key.
fn lease_of(key: &str, keys: &[&Vec<Value>], leases: &[&Value], params: &mut Vec<Value>) -> String {
    if leases.windows(2).all(|pair| pair[0] == pair[1]) {
        params.extend(leases.iter().take(1).map(|lease| (*lease).clone()));
        return "?".into();
    }
    let marks = vec!["?"; keys.len()].join(", ");
    params.extend(keys.iter().map(|key| Value::Bytes(joined(key))));
    params.extend(leases.iter().map(|lease| (*lease).clone()));
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

    fn made(rows: &[(&str, u64)]) -> (String, Vec<Value>) {
        let keys: Vec<_> = rows.iter().map(|(name, _)| vec![(*name).into(), "o".into()]).collect();
        let leases: Vec<_> = rows.iter().map(|(_, micros)| Value::UInt(*micros)).collect();
        batch(TEXT, &keys, &leases)
    }

    #[test]
    fn the_number_of_rows_is_rounded_up_to_a_power_of_two() {
        for (rows, conditions) in [(1, 1), (2, 2), (3, 4), (100, 128), (128, 128)] {
            let names: Vec<_> = (0..rows).map(|number: u64| number.to_string()).collect();
            let (text, params) = made(&names.iter().map(|name| (name.as_str(), 1)).collect::<Vec<_>>());
            assert_eq!(text.matches("(n = ? AND o = ?)").count(), conditions);
            assert_eq!(params.len(), 1 + 2 * conditions);
        }
    }

    #[test]
    fn equal_leases_are_one_parameter_and_different_ones_a_lookup_by_key() {
        let (text, params) = made(&[("a", 7), ("b", 7)]);
        assert_eq!(text, "SET l = ? WHERE ((n = ? AND o = ?) OR (n = ? AND o = ?)) AND a");
        assert_eq!(params, [Value::UInt(7), "a".into(), "o".into(), "b".into(), "o".into()]);
        let (text, params) = made(&[("a", 7), ("b", 8)]);
        assert!(text.starts_with("SET l = ELT(FIELD(CONCAT(n, o), ?, ?), ?, ?) WHERE (("), "{text}");
        assert_eq!(params[..4], ["ao".into(), "bo".into(), Value::UInt(7), Value::UInt(8)]);
    }

    #[test]
    fn a_text_without_slots_is_unchanged() {
        assert_eq!(batch("SELECT 1", &[vec!["a".into()]], &[]), ("SELECT 1".into(), Vec::new()));
    }
}

use mysql_async::Value;

/// A statement about all rows with these primary keys, and its positional parameters, from a text with slots in braces.
/// Other values of a row may follow its primary key.
/// `leases` has the lease for each row, in microseconds, or is empty if the text has no slot for it.
///
/// - `{any name = ? AND owner = ?}`, or `{any name = ?}`, becomes this condition of any of the rows. Every row has a
///   condition of its own on the columns of the primary key, because servers look these up one by one, however few
///   there are. A list of tuples would not do: `MariaDB` reads, and locks, the whole table when it holds a single one.
/// - `{each (?, NULL, ?)}` becomes this list for each of the rows.
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
            params.extend(firsts(&keys, condition.matches('?').count()));
        } else if let Some(list) = slot.strip_prefix("each ") {
            made.push_str(&vec![list; keys.len()].join(", "));
            params.extend(firsts(&keys, list.matches('?').count()));
        } else if let Some(key) = slot.strip_prefix("micros of ") {
            made.push_str(&lease_of(key, &keys, &leases, &mut params));
        }
        rest = behind;
    }
    made.push_str(rest);
    (made, params)
}

/// The first values of each key.
fn firsts(keys: &[&Vec<Value>], count: usize) -> impl Iterator<Item = Value> {
    keys.iter().flat_map(move |key| key.iter().take(count).cloned())
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
    fn a_list_is_repeated_for_each_row() {
        let keys = [vec!["a".into(), "x".into()], vec!["b".into(), "y".into()]];
        let (text, params) = batch("VALUES {each (?, 1, ?)} WHERE {any n = ?}", &keys, &[]);
        assert_eq!(text, "VALUES (?, 1, ?), (?, 1, ?) WHERE (n = ?) OR (n = ?)");
        assert_eq!(params, ["a".into(), "x".into(), "b".into(), "y".into(), "a".into(), "b".into()]);
    }

    #[test]
    fn a_text_without_slots_is_unchanged() {
        assert_eq!(batch("SELECT 1", &[vec!["a".into()]], &[]), ("SELECT 1".into(), Vec::new()));
    }
}

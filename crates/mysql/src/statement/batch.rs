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

    #[test]
    fn the_number_of_rows_is_rounded_up_to_a_power_of_two() {
        for (rows, conditions) in [(1, 1), (2, 2), (3, 4), (100, 128), (128, 128)] {
            let (text, params) = batch("WHERE {any n = ?}", &vec![vec![Value::NULL]; rows], &[]);
            assert_eq!((text.matches("(n = ?)").count(), params.len()), (conditions, conditions));
        }
    }
}

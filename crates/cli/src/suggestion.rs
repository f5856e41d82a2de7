use leasehold::Kind;

/// Names that stores have elsewhere, and the scheme that they have here.
const ELSEWHERE: [(&str, &str); 7] = [
    ("mariadb", "mysql"),
    ("pg", "postgres"),
    ("pgsql", "postgres"),
    ("psql", "postgres"),
    ("sqlite", "file"),
    ("sentinel", "redis-sentinel"),
    ("flock", "file"),
];

/// The ports by which a store is known that was named without a scheme.
const PORTS: [(&str, &str); 5] =
    [("6379", "redis"), ("26379", "redis-sentinel"), ("3306", "mysql"), ("5432", "postgres"), ("2379", "etcd")];

/// What somebody may have meant by an address under a scheme that no store has.
///
/// It shows nothing that may be a password: of the address only what stands before the first colon, and behind it a port that a
/// store is known by, or that is on this machine.
pub(crate) fn did_you_mean(url: &str, kinds: &[Kind]) -> Option<String> {
    let (scheme, rest) = url.split_once(':')?;
    let digits = rest.split('/').next().filter(|port| port.parse::<u16>().is_ok());
    if let Some(port) = digits {
        let known = PORTS.iter().find(|(of, _)| *of == port).map(|(_, scheme)| *scheme);
        let is_here = scheme == "localhost";
        let meant = known.unwrap_or("redis");
        let port = if known.is_some() || is_here { port } else { "PORT" };
        return is_known(kinds, meant).then(|| format!("{meant}://{scheme}:{port}"));
    }
    let plain = scheme.to_ascii_lowercase().replace(['+', '_', '.'], "-");
    let elsewhere = ELSEWHERE.iter().find(|(name, _)| *name == plain).map(|(_, scheme)| *scheme);
    let all = kinds.iter().flat_map(Kind::all_schemes);
    let meant = elsewhere.filter(|scheme| is_known(kinds, scheme)).or_else(|| {
        let near = all.map(|known| (distance(known, &plain), known)).min_by_key(|(distance, _)| *distance)?;
        // A third of it may be wrong: more is another word.
        (near.0 * 3 <= plain.len()).then_some(near.1)
    })?;
    Some(if rest.starts_with("//") { format!("{meant}://…") } else { format!("{meant}:…") })
}

fn is_known(kinds: &[Kind], scheme: &str) -> bool {
    kinds.iter().flat_map(Kind::all_schemes).any(|known| known == scheme)
}

/// How many letters have to be put in, left out or replaced to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<_> = other.bytes().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.bytes().enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for column in 0..other.len() {
            let replaced = before + usize::from(other[column] != letter);
            before = row[column + 1];
            row[column + 1] = replaced.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use leasehold::kinds;

    use super::*;

    #[test]
    fn words_are_as_far_apart_as_letters_differ() {
        for (one, other, apart) in
            [("", "abc", 3), ("redis", "redis", 0), ("redis", "reddis", 1), ("mysql", "mqsyl", 2)]
        {
            assert_eq!(distance(one, other), apart, "{one} {other}");
            assert_eq!(distance(other, one), apart, "{other} {one}");
        }
    }

    #[test]
    #[cfg(all(feature = "redis", feature = "mysql", feature = "postgres"))]
    fn what_was_meant_is_named_and_nothing_that_may_be_a_password() {
        for (url, meant) in [
            ("localhost:6399", Some("redis://localhost:6399")),
            ("localhost:3306/locks", Some("mysql://localhost:3306")),
            ("db1:6379", Some("redis://db1:6379")),
            ("db1:5432/locks", Some("postgres://db1:5432")),
            ("ada:60444", Some("redis://ada:PORT")),
            ("reddis://:s3cret@h", Some("redis://…")),
            ("redis+cluster://h", Some("redis-cluster://…")),
            ("rediss+cluster://h", Some("rediss-cluster://…")),
            ("redis_rw:redis://h", Some("redis-rw:…")),
            ("postgress://ada:s3cret@h/db", Some("postgres://…")),
            ("mariadb://ada:s3cret@h/db", Some("mysql://…")),
            ("FILES:/var/lock", Some("file:…")),
            ("ada:s3cret", None),
            ("mongodb://h", None),
            ("s3cret", None),
        ] {
            let said = did_you_mean(url, &kinds());
            assert_eq!(said.as_deref(), meant, "{url}");
            assert!(!said.is_some_and(|said| said.contains("s3cret") || said.contains("60444")), "{url}");
        }
    }
}

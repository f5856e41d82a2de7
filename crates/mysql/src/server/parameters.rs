use std::ops::RangeInclusive;

use leasehold_core::{Error, ErrorKind, Result};

/// The largest number of connections of a pool where the URL does not say one.
const DEFAULT_MAX: usize = 32;

/// The largest number of connections that a URL may allow. The driver allocates for all of them at once, and the process
/// is aborted where there is not enough memory.
const LARGEST_MAX: usize = 1_000;

const YEAR: u64 = 365 * 24 * 3600;

/// The parameters of the driver that are numbers, with the values that are allowed here. The driver accepts any number,
/// and panics or aborts at some.
pub(super) const NUMBERS: [(&str, RangeInclusive<u64>); 11] = [
    ("pool_min", 0..=LARGEST_MAX as u64),
    ("pool_max", 1..=LARGEST_MAX as u64),
    ("inactive_connection_ttl", 0..=YEAR),
    ("ttl_check_interval", 1..=YEAR),
    ("conn_ttl", 0..=YEAR),
    ("abs_conn_ttl", 0..=YEAR),
    ("abs_conn_ttl_jitter", 0..=YEAR),
    ("tcp_keepalive", 1_000..=24 * 3_600_000),
    ("max_allowed_packet", 1_024..=1 << 30),
    ("wait_timeout", 1..=YEAR),
    ("stmt_cache_size", 0..=10_000),
];

/// Refuses a number that the driver would panic at.
pub(super) fn check_number(name: &str, value: &str) -> Result<()> {
    let Some((_, range)) = NUMBERS.iter().find(|(known, _)| *known == name) else { return Ok(()) };
    if value.parse().is_ok_and(|number: u64| range.contains(&number)) {
        return Ok(());
    }
    Err(refuse(format!("{name} is a number from {} to {}, not {value:?}", range.start(), range.end())))
}

/// Refuses `prefer_socket=true`: the local socket may lead to another server than the address; see the README.
pub(super) fn check_socket(name: &str, value: &str) -> Result<()> {
    if name == "prefer_socket" && value == "true" {
        return Err(refuse(
            "prefer_socket is always off: the server's path may be another server's here; say socket=/path",
        ));
    }
    Ok(())
}

/// Adds the size of the pool where the URL leaves it open. The driver would keep ten idle connections, and refuse a
/// smaller limit.
pub(super) fn with_pool_size(mut pairs: Vec<(String, String)>) -> Vec<(String, String)> {
    let given = |wanted: &str| pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let (min, max) = (given("pool_min"), given("pool_max"));
    let least = min.as_ref().and_then(|min| min.parse().ok()).unwrap_or(0);
    if min.is_none() {
        pairs.push(("pool_min".into(), "0".into()));
    }
    if max.is_none() {
        pairs.push(("pool_max".into(), DEFAULT_MAX.max(least).to_string()));
    }
    pairs
}

/// The operation that errors about a URL name.
pub(super) const PARSE: &str = "read the address";

/// The error for a URL that cannot be used.
pub(super) fn refuse(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOptions, PARSE).detail(why)
}

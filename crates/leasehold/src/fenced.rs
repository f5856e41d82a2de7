//! Fenced writes: a resource keeps the largest fencing token that it has seen, and refuses writes with a smaller one.
//!
//! A lock alone cannot stop a program that was paused past the end of its lease: it goes on, and writes beside the next holder. The
//! next holder has a larger [token](FencingToken). So each write is sent with the token of its lock, and the resource compares and
//! writes in **one atomic step**. A program that reads the token first and writes afterwards can be paused in between, and nothing
//! is gained.
//!
//! A write with the token that was seen last is carried out: it is another write of the same holder, or the same one again after
//! its answer was lost. The next holder should write soon after it was granted: what the resource has not seen, it cannot compare.
//!
//! This module has the step for three kinds of resources, without depending on a driver: [`SqlWrite`] for a row in MySQL, MariaDB or
//! PostgreSQL, [`REDIS_WRITE`] for a hash in Redis, and [`put_object`] for a store of objects with conditional writes, such as S3.
//!
//! The token has to come from the same lock each time. Two locks, or two stores, have tokens that mean nothing to each other.

use leasehold_core::{Error, ErrorKind, FencingToken, Result};

/// How a fenced write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a stale write was not carried out, and its lock belongs to another holder"]
pub enum Outcome {
    /// It was carried out.
    Written,
    /// Nothing was written: the resource has seen a larger token. The lock of this write is lost.
    Stale {
        /// The largest token that the resource has seen.
        seen: FencingToken,
    },
}

impl Outcome {
    /// The outcome of a write with this token, where the resource has `seen` this one as the largest since.
    pub fn of(token: FencingToken, seen: impl Into<FencingToken>) -> Self {
        let seen = seen.into();
        if seen <= token { Self::Written } else { Self::Stale { seen } }
    }
}

/// The statements of a fenced write to one row, in MySQL, MariaDB or PostgreSQL.
///
/// The row has a column for the fence, `BIGINT NOT NULL DEFAULT 0`, and exists before it is written to. A fence that is `NULL` is
/// smaller than nothing: every write is refused, as if there were no row.
///
/// ```
/// use leasehold::FencingToken;
/// use leasehold::fenced::{Outcome, SqlWrite};
///
/// # fn main() -> leasehold::Result<()> {
/// let write = SqlWrite::mysql("account", "id", "fence", &["balance"])?;
/// assert_eq!(write.update(), "UPDATE account SET balance = ?, fence = ? WHERE id = ? AND fence <= ?");
/// assert_eq!(write.seen(), "SELECT fence FROM account WHERE id = ? FOR UPDATE");
///
/// // With any driver: the values in the order of the columns, then token, key, token.
/// # let token = FencingToken::from(42);
/// # struct Session;
/// # impl Session {
/// #     fn update(&self, _: &str, _: (i64, u64, u64, u64)) -> u64 { 0 }
/// #     fn query(&self, _: &str, _: u64) -> Option<u64> { Some(43) }
/// # }
/// # let session = Session;
/// let rows = session.update(write.update(), (120, token.get(), 7, token.get()));
/// let seen = if rows == 0 { session.query(write.seen(), 7) } else { None };
/// assert_eq!(SqlWrite::outcome(token, rows, seen), Some(Outcome::Stale { seen: 43.into() }));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlWrite {
    update: String,
    seen: String,
}

impl SqlWrite {
    /// A write to these columns of a row of a MySQL or MariaDB. The row is that with the given key in the column `key`.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) for no columns, and for a name that is not made of ASCII letters, digits and `_`,
    /// beginning with no digit. The name of the table may have one dot. Names are not quoted.
    pub fn mysql(table: &str, key: &str, fence: &str, columns: &[&str]) -> Result<Self> {
        Self::new(table, key, fence, columns, |_| "?".to_owned())
    }

    /// The same for PostgreSQL, whose parameters have numbers. The parameters come in the same order.
    ///
    /// # Errors
    /// As for [`mysql`](Self::mysql).
    pub fn postgres(table: &str, key: &str, fence: &str, columns: &[&str]) -> Result<Self> {
        Self::new(table, key, fence, columns, |number| format!("${number}"))
    }

    fn new(table: &str, key: &str, fence: &str, columns: &[&str], parameter: impl Fn(usize) -> String) -> Result<Self> {
        let parts = table.split_once('.').map_or([table, table], |(schema, table)| [schema, table]);
        let wrong = parts.iter().chain([&key, &fence]).chain(columns).find(|name| !is_name(name));
        if wrong.is_some() || columns.is_empty() {
            let why =
                wrong.map_or_else(|| "no column to write".to_owned(), |name| format!("{name:?} is no plain name"));
            return Err(Error::new(ErrorKind::InvalidOptions, "make a fenced write").detail(why));
        }
        let set = columns.iter().chain([&fence]).enumerate();
        let set: Vec<_> = set.map(|(at, column)| format!("{column} = {}", parameter(at + 1))).collect();
        let (which, token) = (parameter(columns.len() + 2), parameter(columns.len() + 3));
        Ok(Self {
            update: format!("UPDATE {table} SET {} WHERE {key} = {which} AND {fence} <= {token}", set.join(", ")),
            seen: format!("SELECT {fence} FROM {table} WHERE {key} = {} FOR UPDATE", parameter(1)),
        })
    }

    /// The write, in one statement. Its parameters are the values in the order of the columns, the token, the key of the row, and the
    /// token again.
    pub fn update(&self) -> &str {
        &self.update
    }

    /// Asks for the fence after an [`update`](Self::update) of no row. Its parameter is the key of the row.
    ///
    /// It locks the row until the end of the transaction. A plain `SELECT` in a transaction that began earlier would be shown the row
    /// as it was then.
    pub fn seen(&self) -> &str {
        &self.seen
    }

    /// The outcome of an [`update`](Self::update) of so many rows; for none, `seen` is what [`seen`](Self::seen) found. `None`: there
    /// was no such row, and nothing was written. A row that is found with a smaller fence was made since the update: the write can be
    /// sent again.
    ///
    /// No row is reported for a stale write, for a row that is not there, and by MySQL and MariaDB also for a write that was carried
    /// out and changed nothing, such as the same write again.
    pub fn outcome(token: FencingToken, rows: u64, seen: Option<u64>) -> Option<Outcome> {
        match seen {
            _ if rows > 0 => Some(Outcome::Written),
            Some(seen) if seen >= token.get() => Some(Outcome::of(token, seen)),
            _ => None,
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// A script for Redis that writes fields of a hash, and the token into its field `fence`, in one step.
///
/// `KEYS[1]` is the hash, `ARGV[1]` the token, and field, value, field, value and so on follow. The answer is a number: the largest
/// token that the hash has seen, the caller's own if the write was carried out. [`Outcome::of`] reads it:
///
/// ```
/// use leasehold::FencingToken;
/// use leasehold::fenced::{Outcome, REDIS_WRITE};
///
/// # struct Redis;
/// # impl Redis { fn eval(&self, _: &str, _: &[&str], _: &[&str]) -> u64 { 43 } }
/// # let (redis, token) = (Redis, FencingToken::from(42));
/// let seen: u64 = redis.eval(REDIS_WRITE, &["account:7"], &[&token.to_string(), "balance", "120"]);
/// assert_eq!(Outcome::of(token, seen), Outcome::Stale { seen: 43.into() });
/// ```
///
/// The fence is in the hash itself, so it is lost with the hash: by `DEL`, by `EXPIRE`, by eviction, and in a fail-over to a replica
/// that had not got it. The next write is carried out then, whatever its token is. The script needs Redis 4.0 or later.
pub const REDIS_WRITE: &str = include_str!("fenced.lua");

/// Writes an object to a store with conditional writes, such as S3 (`If-Match`), if it has not seen a larger token.
///
/// - `read` answers the version of the object and the fence in its metadata; `None` if there is no object. An object without a fence has
///   the fence 0.
/// - `put` writes the object with `token` as its fence, on the condition that its version is still this one (`If-Match`), or that there
///   is no object (`None`: `If-None-Match: *`). It answers `false` where the condition does not hold (HTTP 412; of S3 also 409,
///   and 404 for an object that was deleted in between).
///
/// Where another writer came between the two, both are done again. That ends when nobody writes in between.
///
/// **The version must differ after every write.** The generation of Google Cloud Storage and the `ETag` of Azure do. The `ETag` of S3 is
/// often a digest of the content, without the metadata: there, write the token into the content as well, or a late write passes when
/// the next holder wrote the same content as was there before.
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::Mutex;
/// use leasehold::FencingToken;
/// use leasehold::fenced::{Outcome, put_object};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Infallible> {
/// // A store with one object: its version, its fence and its content.
/// let object = Mutex::new(None::<(u64, u64, &str)>);
/// let put = async |token: u64, content: &'static str| {
///     let read = || async { Ok::<_, Infallible>(object.lock().unwrap().map(|(version, fence, _)| (version, fence))) };
///     let write = |version: Option<u64>| {
///         let mut object = object.lock().unwrap();
///         let is_same = object.map(|(version, ..)| version) == version;
///         if is_same {
///             *object = Some((version.unwrap_or(0) + 1, token, content));
///         }
///         async move { Ok::<_, Infallible>(is_same) }
///     };
///     put_object(FencingToken::from(token), read, write).await
/// };
/// assert_eq!(put(5, "of the holder").await?, Outcome::Written);
/// assert_eq!(put(9, "of the next holder").await?, Outcome::Written);
/// assert_eq!(put(5, "too late").await?, Outcome::Stale { seen: 9.into() });
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of `read` and `put`. After an error of `put` the outcome is unknown: the same call again settles it.
///
/// # Cancel safety
/// Dropping the future while `put` is under way leaves the outcome unknown.
pub async fn put_object<V, E, R, P>(
    token: FencingToken,
    read: impl Fn() -> R,
    put: impl Fn(Option<V>) -> P,
) -> Result<Outcome, E>
where
    R: Future<Output = Result<Option<(V, u64)>, E>>,
    P: Future<Output = Result<bool, E>>,
{
    loop {
        let (version, seen) = read().await?.map_or((None, 0), |(version, seen)| (Some(version), seen));
        let outcome = Outcome::of(token, seen);
        if outcome != Outcome::Written || put(version).await? {
            return Ok(outcome);
        }
    }
}

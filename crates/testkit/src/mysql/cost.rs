//! What a statement touches, as the server counts it: every row that it reads, and every row that it locks.

use std::time::Duration;

use leasehold_core::{LockKey, OwnerId};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Value};

use leasehold_mysql::{Lease, Namespace, RENEWAL_BATCH, batch, micros, named};

const MINUTE: Duration = Duration::from_secs(60);

/// How many rows of other keys the tables hold while statements are measured: many, and so few that a server might
/// rather read all of them.
pub const OTHERS: [u64; 2] = [10_000, 200];

/// REPEATABLE READ also locks gaps: in place of a row that is not there, behind a range, and before a row that is the
/// first of its page.
const ISOLATIONS: [&str; 2] = ["READ COMMITTED", "REPEATABLE READ"];

/// What a statement touched, or the most that it may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The sum of `Handler_read_*`.
    pub reads: u64,
    /// The row locks that it holds until it commits, those on gaps included.
    pub locks: u64,
}

impl Cost {
    pub fn new(reads: u64, locks: u64) -> Self {
        Self { reads, locks }
    }
}

/// One statement with its parameters, and the most that it may touch.
#[derive(Debug)]
pub struct Trial {
    /// What is special about it.
    pub about: String,
    pub text: String,
    pub params: Params,
    /// The most that it may touch at READ COMMITTED.
    pub most: Cost,
    /// The locks on gaps at REPEATABLE READ that are not beside one of those.
    pub gaps: u64,
}

impl Trial {
    /// Without locks on gaps.
    pub fn new(about: &str, (text, params): (impl Into<String>, impl Into<Params>), most: Cost) -> Self {
        Self { about: about.into(), text: text.into(), params: params.into(), most, gaps: 0 }
    }
}

/// Runs each trial of each statement in a transaction of its own, undoes it, and answers which touched too much.
pub async fn excess(session: &mut Conn, trials: &[(&str, Vec<Trial>)]) -> Vec<String> {
    let mut faults = Vec::new();
    for isolation in ISOLATIONS {
        session.query_drop(format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")).await.unwrap();
        for (name, trials) in trials {
            assert!(!trials.is_empty(), "nobody says what {name} may touch");
            for trial in trials {
                let found = measure(session, &trial.text, trial.params.clone()).await;
                // Beside each row a gap, where the row is the first of its page.
                let gaps = if isolation == "REPEATABLE READ" { trial.most.locks + trial.gaps } else { 0 };
                if found.reads > trial.most.reads || found.locks > trial.most.locks + gaps {
                    let Trial { about, most, .. } = trial;
                    faults.push(format!("{name}, {about}, {isolation}: {found:?}, and may {most:?} and {gaps} gaps"));
                }
            }
        }
    }
    faults
}

/// As many leases as a batch may have, on keys between those of the other rows.
pub fn leases(kind: &str) -> Vec<Lease> {
    let lease = |number: usize| (name_of(&format!("key/{:08}/{kind}", 9001 + number)), OwnerId::random(), MINUTE);
    (0..RENEWAL_BATCH).map(lease).collect()
}

/// The row of a key in the usual namespace.
pub fn name_of(key: &str) -> Vec<u8> {
    Namespace::default().name_of(&LockKey::new(key).unwrap())
}

/// The trials of a statement about many rows, which may read as many, and lock as many if it `locks`: for one lease
/// and for several, all alike and all different, held, of strangers, and on keys without a row.
pub fn batches(held: &[Lease], locks: bool, build: impl Fn(&[&Lease]) -> (String, Vec<Value>)) -> Vec<Trial> {
    let all_differ = (0u64..)
        .zip(held)
        .map(|(number, (name, owner, _))| (name.clone(), *owner, MINUTE + Duration::from_millis(number)));
    let strangers = held.iter().map(|(name, ..)| (name.clone(), OwnerId::random(), MINUTE));
    let nowhere = held.iter().map(|(name, owner, _)| ([name, b"/nowhere".as_slice()].concat(), *owner, MINUTE));
    let kinds: [(&str, Vec<Lease>); 4] = [
        ("all alike", held.to_vec()),
        ("all different", all_differ.collect()),
        ("of strangers", strangers.collect()),
        ("without rows", nowhere.collect()),
    ];
    let trial = |kind: &str, leases: &[Lease]| {
        let (text, params) = build(&leases.iter().collect::<Vec<_>>());
        let count = leases.len() as u64;
        let most = Cost::new(count, if locks { count } else { 0 });
        Trial::new(&format!("{count} leases {kind}"), (text, params), most)
    };
    let sizes = [1, 2, 3, held.len()];
    kinds.iter().flat_map(|(kind, leases)| sizes.map(|size| trial(kind, &leases[..size]))).collect()
}

/// The [trials](batches) of a statement about the rows of these leases, by their names and owners. Its other parameters are before
/// those or behind them.
pub fn rows(text: &str, held: &[Lease], locks: bool, [before, behind]: [&[Value]; 2]) -> Vec<Trial> {
    batches(held, locks, |leases| {
        let key = |(name, owner, _): &&Lease| vec![Value::Bytes(name.clone()), owner.as_bytes().into()];
        let (text, keys) = batch(text, &leases.iter().map(key).collect::<Vec<_>>(), &[]);
        (text, [before, &keys, behind].concat())
    })
}

/// The [trials](batches) of a statement that claims these leases, with these parameters behind them. Those without a row lock the
/// gap in which it comes to be; the last row is read again, until the number of rows is a power of two.
pub fn claims(text: &str, held: &[Lease], behind: &[Value]) -> Vec<Trial> {
    let trials = batches(held, true, |leases| {
        let row = |(name, owner, ttl): &&Lease| {
            vec![Value::Bytes(name.clone()), Value::NULL, Value::NULL, owner.as_bytes().into(), micros(*ttl)]
        };
        let (text, rows) = batch(text, &leases.iter().map(row).collect::<Vec<_>>(), &[]);
        (text, [&rows, behind].concat())
    });
    let padded = |most: Cost| Cost::new(most.reads.next_power_of_two(), most.locks);
    trials.into_iter().map(|trial| Trial { most: padded(trial.most), ..trial }).collect()
}

/// The statement about a row of each of these keys, with these parameters too.
pub fn one_row(text: &str, keys: &[&str], more: &[(&'static str, Value)], most: Cost) -> Vec<Trial> {
    let trial = |key: &&str| {
        let params = more.iter().cloned().chain([("name", Value::Bytes(name_of(key)))]);
        Trial::new(key, (text, named(params)), most)
    };
    keys.iter().map(trial).collect()
}

/// The statement about the first chunk of the rows, with these parameters too.
pub fn chunk(text: &str, more: &[(&'static str, Value)], most: Cost) -> Vec<Trial> {
    let names = [("from", ""), ("to", "l"), ("after", "key/00000000"), ("upto", "key/00005000")];
    let names = names.map(|(name, key)| (name, Value::Bytes(Namespace::default().followed_by(key.as_bytes()))));
    let params = names.into_iter().chain(more.iter().cloned());
    vec![Trial::new("a chunk", (text, named(params)), most)]
}

/// What one statement touches; it is undone.
pub async fn measure(session: &mut Conn, text: &str, params: Params) -> Cost {
    let prepared = session.prep(text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    session.query_drop("FLUSH STATUS").await.unwrap();
    session.query_drop("BEGIN").await.unwrap();
    session.exec_drop(&prepared, params).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    let reads: Vec<(String, u64)> = session.query("SHOW SESSION STATUS LIKE 'Handler_read%'").await.unwrap();
    let status: Vec<(String, String, String)> = session.query("SHOW ENGINE INNODB STATUS").await.unwrap();
    let locks = locks_of(&status[0].2, session.id());
    session.query_drop("ROLLBACK").await.unwrap();
    session.close(prepared).await.unwrap();
    Cost { reads: reads.iter().map(|(_, count)| count).sum(), locks }
}

/// The row locks of a session, in the words of the server.
fn locks_of(status: &str, session: u32) -> u64 {
    let (before, _) = status.split_once(&format!("thread id {session},")).unwrap_or_default();
    let transaction = before.rsplit("---TRANSACTION").next().unwrap_or_default();
    let (count, _) = transaction.split_once(" row lock(s)").unwrap_or_default();
    count.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

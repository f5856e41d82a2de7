#![allow(clippy::doc_markdown, reason = "these comments are the help texts, which are plain text")]

#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use leasehold::LockKey;

use crate::duration;
use crate::values::{Texts, key, lease};

/// Hold a lock for a program of any language, as long as it keeps this command's input open
///
/// With KEY it asks for that lock; without, the first line of the input does, as in `{"lock":"KEY","wait_ms":5000}`. Each line of
/// the output is an object of JSON: `{"leasehold":1}`, then `{"held":...}` when the lock is held, `{"until":...}` after each
/// renewal, and `{"lost":...}` if it is lost. The end of the input releases the lock, and so does the line `{"release":true}`.
/// Exits with 0 when it was released, 75 if another held it for the whole wait, 76 if it was lost.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct HoldArgs {
    /// The name of the lock; without it, the input says what to lock
    pub(crate) key: Option<String>,

    /// Give up at once if the lock is held
    #[arg(short, long, conflicts_with = "wait", requires = "key")]
    pub(crate) nonblock: bool,

    /// Give up after DUR
    #[arg(short, long, value_name = "DUR", value_parser = duration::parse, requires = "key")]
    pub(crate) wait: Option<Duration>,

    /// Acquire it in shared mode, together with other readers
    #[arg(short, long, requires = "key")]
    pub(crate) shared: bool,

    /// Let N hold it at a time instead of one
    #[arg(long, value_name = "N", conflicts_with = "shared", requires = "key")]
    pub(crate) permits: Option<usize>,

    /// The lease: how long the store keeps the lock for a holder that is gone
    #[arg(long, value_name = "DUR", value_parser = duration::parse_positive, requires = "key")]
    pub(crate) ttl: Option<Duration>,

    #[command(flatten)]
    pub(crate) texts: Texts,
}

/// Grant locks to all processes of this host, at a Unix socket
///
/// They speak as to `hold`, a connection for each lock. A process that dies releases at once, and no process needs the password
/// of the store. The socket has mode 0660: whoever may write to it may lock, unless --policy says less. On SIGTERM what
/// clients hold by lines is released, and who uses the backend agent: goes on with the next process; as a service of systemd with a file
/// descriptor store, all do.
#[cfg(target_os = "linux")]
#[derive(Args, Debug)]
pub(crate) struct AgentArgs {
    /// The socket, unless systemd hands one over
    #[arg(long, value_name = "PATH", env = "LEASEHOLD_AGENT", default_value = "/run/leasehold.sock")]
    pub(crate) socket: PathBuf,

    /// Allow only what FILE says, a line for each: user:NAME|group:NAME|* PREFIX|* [keys=N] [connections=N]
    ///
    /// FILE must be a regular file that belongs to you or root and that nobody else can write to. It is read once.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
}

/// Measure the store, and say which lease fits it
///
/// Measures for --seconds how long a round trip takes, how many locks can be taken and released, and how soon a waiter has a lock
/// that another process releases. It locks keys of its own, which begin with "leasehold bench/". What a key leaves in the store
/// that was locked once, these leave, too.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// The store, instead of --backend
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,

    /// For how long to measure: 1 to 600
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take a lock that outlives this command, and print the text by which it is renewed and released
///
/// For jobs of several steps, such as those of CI, where no process lives from the first to the last. Nobody renews the lock but
/// `leasehold renew`. Whoever has the text can release it. On a store without leases (`file:`) there is none (exit 78).
#[derive(Args, Debug)]
pub(crate) struct AcquireArgs {
    /// The name of the lock
    #[arg(value_parser = key)]
    pub(crate) key: LockKey,

    /// How long it is held unless it is renewed
    #[arg(long, value_name = "DUR", value_parser = lease)]
    pub(crate) ttl: Duration,

    /// Give up at once if the lock is held
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) nonblock: bool,

    /// Give up after DUR
    #[arg(short, long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,

    #[command(flatten)]
    pub(crate) texts: Texts,
}

/// Prolong a lock that `leasehold acquire` took, and print its new text
///
/// The old text is of no use any more. Exits with 76 if the lock is not held any more.
#[derive(Args, Debug)]
pub(crate) struct RenewArgs {
    /// The text, or - to read it from the input
    pub(crate) text: String,

    /// How long it is held from now on at least; a longer lease stays
    #[arg(long, value_name = "DUR", value_parser = lease)]
    pub(crate) ttl: Duration,
}

/// Release a lock that `leasehold acquire` took
///
/// Exits with 76 if it was not held any more.
#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// The text, or - to read it from the input
    pub(crate) text: String,
}

/// Wait until nobody holds a lock, without taking it
///
/// It may be held again when this command has ended. Exits with 75 when DUR is over.
#[derive(Args, Debug)]
pub(crate) struct WaitArgs {
    /// The key
    #[arg(value_parser = key)]
    pub(crate) key: LockKey,

    /// Give up after DUR
    #[arg(short, long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
}

#![allow(clippy::doc_markdown, reason = "these comments are the help texts, which are plain text")]

use clap::Args;

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

/// Let nodes of a redlock that lost their data vote again
///
/// Waits until every lock that may have counted on a lost vote has ended, which takes as long as the longest lease in
/// use, then copies the counters from a majority of the other nodes.
#[derive(Args, Debug)]
pub(crate) struct HealArgs {}

/// Create the tables that a store in MySQL, MariaDB or PostgreSQL needs, if they do not exist
///
/// Run it once for each store, as a user who may create tables: the programs that lock need fewer rights. Once more does no harm.
#[derive(Args, Debug)]
pub(crate) struct MigrateArgs {}

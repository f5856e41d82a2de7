#![allow(clippy::doc_markdown, reason = "these comments are the help texts, which are plain text")]

use std::time::Duration;

use clap::{Args, ColorChoice};

use crate::values::within;

/// Watch the locks that are held, as a table that follows them
///
/// The table can be sorted and filtered, shows all that is known of a lock, and releases one by force; `?` shows its keys. It asks
/// the store every --interval for all locks that are held. A key with several holders is shown with the one who has held it
/// longest. With --json it needs no terminal, and prints a line for each change.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Show only keys that start with PREFIX
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,

    /// Ask the store again DUR after its last answer, and no sooner than that took; 100ms to 24h
    #[arg(long, value_name = "DUR", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,

    /// Use colours, which the table can be read without; auto: unless the environment says NO_COLOR or TERM=dumb
    #[arg(long, value_name = "WHEN", default_value = "auto", conflicts_with = "json")]
    pub(crate) color: ColorChoice,

    /// Print a JSON object a line for each change, and first for each lock that is held
    #[arg(long)]
    pub(crate) json: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let longest = Duration::from_secs(24 * 60 * 60);
    within(text, Duration::from_millis(100)..=longest, "an interval takes 100ms to 24h")
}

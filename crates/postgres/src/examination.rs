use leasehold_core::Result;
use tokio_postgres::Row;

use crate::address::Address;
use crate::reply::column;
use crate::sessions::{Sessions, Step};

const SETTINGS: &str = "SELECT current_setting('fsync'), current_setting('synchronous_commit')";

/// Looks for settings that make this server unsafe for locks although it may grant them. Answers one sentence for each,
/// with the cure.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`](crate::ErrorKind::InvalidOptions) for a URL that cannot be used, and the errors of
/// connecting: a standby is one, too.
pub async fn examine(url: &str) -> Result<Vec<String>> {
    let sessions = Sessions::new(Address::parse(url)?);
    let found = sessions.run(Step::new("examine", SETTINGS), &[]).await;
    sessions.close();
    found?.first().map_or(Ok(Vec::new()), warnings)
}

fn warnings(settings: &Row) -> Result<Vec<String>> {
    let [fsync, commit]: [&str; 2] = [column(settings, 0, "examine")?, column(settings, 1, "examine")?];
    let mut warnings = Vec::new();
    if fsync == "off" {
        let why = "fsync is off, so that a crash of the machine forgets locks that are held, and two can hold one: set fsync = on";
        warnings.push(why.to_owned());
    }
    if commit == "off" {
        let why = "synchronous_commit is off: grants are written to the disk all the same, and a crash may bring released locks \
                   back until their leases end";
        warnings.push(why.to_owned());
    }
    Ok(warnings)
}

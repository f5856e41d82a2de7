use leasehold_core::{BoxFuture, Result};

use super::address::Address;
use super::sessions::Sessions;
use crate::statement::params::Params;
use crate::statement::reply::Row;
use crate::statement::step::Step;

const SETTINGS: &str = "SELECT CAST(@@GLOBAL.read_only AS CHAR), CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS CHAR)";

/// Advice for a server that refuses an operation of a lock.
pub const CURE: &str = "connect to the primary (or SET GLOBAL read_only = 0), and run GRANT SELECT, INSERT, UPDATE, \
                        DELETE ON the database's leasehold tables TO the user";

/// Looks for settings that make this server unsafe for locks although it may grant them. Answers one sentence for each,
/// with the cure.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) for a URL that cannot be used, and the errors
/// of connecting.
pub fn examine(url: &str) -> BoxFuture<'_, Result<Vec<String>>> {
    Box::pin(async move {
        let sessions = Sessions::new(&Address::parse(url)?);
        let found = sessions.run(Step::new("examine", SETTINGS).repeatable(), Params::Empty).await;
        sessions.close().await;
        Ok(found?.rows.first().map(warnings).unwrap_or_default())
    })
}

fn warnings(settings: &Row) -> Vec<String> {
    let mut warnings = Vec::new();
    if !["0", "OFF", ""].contains(&settings.text(0).as_str()) {
        warnings.push(
            "the server is read-only, and only users with extra rights can take locks there: connect to the primary, \
             or run SET GLOBAL read_only = 0"
                .to_owned(),
        );
    }
    if ["0", "2"].contains(&settings.text(1).as_str()) {
        warnings.push(format!(
            "innodb_flush_log_at_trx_commit is {}, so that a crash forgets locks that are held, and two can hold one: run \
             SET GLOBAL innodb_flush_log_at_trx_commit = 1",
            settings.text(1)
        ));
    }
    warnings
}

use leasehold_core::Result;
use mysql_async::{Params, Row};

use crate::{Address, Sessions, Step};

const SETTINGS: &str = "SELECT CAST(@@GLOBAL.read_only AS CHAR), CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS CHAR)";

/// What makes this server unsafe for locks although it may grant them, one sentence each, with the cure.
///
/// # Errors
/// Those of connecting.
pub async fn examine(url: &str) -> Result<Vec<String>> {
    let sessions = Sessions::new(&Address::parse(url)?);
    let found = sessions.run(Step::new("examine", SETTINGS).repeatable(), Params::Empty).await;
    sessions.close().await;
    Ok(found?.rows.first().map(warnings).unwrap_or_default())
}

fn warnings(settings: &Row) -> Vec<String> {
    let setting =
        |at: usize| settings.get_opt::<String, usize>(at).and_then(std::result::Result::ok).unwrap_or_default();
    let mut warnings = Vec::new();
    if !["0", "OFF", ""].contains(&setting(0).as_str()) {
        warnings.push(
            "the server is read-only, and only users with extra rights can take locks there: connect to the primary, \
             or run SET GLOBAL read_only = 0"
                .to_owned(),
        );
    }
    if ["0", "2"].contains(&setting(1).as_str()) {
        warnings.push(format!(
            "innodb_flush_log_at_trx_commit is {}, so that a crash forgets locks that are held, and two can hold one: run \
             SET GLOBAL innodb_flush_log_at_trx_commit = 1",
            setting(1)
        ));
    }
    warnings
}

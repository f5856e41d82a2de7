//! Beyond one server.

use std::time::Duration;

use leasehold_redis_reentrant::{LockerExt, RedisReentrant, ReleaseOutcome, Result};
use leasehold_testkit::redis::Sentinels;
use leasehold_testkit::{needs, test};

#[test]
async fn a_level_that_too_few_replicas_confirm_is_given_back() -> Result<()> {
    let set = needs("redis-server", Sentinels::start().await);
    let builder = RedisReentrant::builder().url(set.primary.url());
    let sessions = builder.confirm_replicas(1, Duration::from_millis(500)).connect().await?;
    let session = sessions.session();
    let outer = session.lock("k").await?;
    set.replicas[0].pause();
    let error = session.try_lock("k").await.unwrap_err();
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    set.replicas[0].resume();
    assert!(outer.is_held());
    assert_eq!(outer.release().await?, ReleaseOutcome::Released);
    assert!(sessions.session().lock_for("k", Duration::from_secs(60)).await.is_ok(), "no level is left");
    Ok(())
}

//! What the README says of the least user.

use leasehold_redis_rw::{KIND, LockOptions, LockerExt, RedisRw, Result, RwLockerExt};
use leasehold_testkit::redis::{LeastUser, Scenario, Server};
use leasehold_testkit::{eventually, needs, test};

const README: &str = include_str!("../../README.md");

/// An inbox is never unsubscribed from, and only readers are counted and listed.
const SILENT: [&str; 8] =
    ["+type", "+pubsub|numsub", "+unsubscribe", "+hlen", "+zadd", "+zrem", "+zrevrange", "+zrangebyscore"];

#[test]
async fn without_what_counts_or_lists_readers_the_last_one_lets_the_writer_in() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    for without in ["", "+hlen", "+zadd", "+zrem", "+zrevrange", "+zrangebyscore"] {
        let url = LeastUser::of(README).make(&server, &[without]).await;
        let (here, there) = (RedisRw::connect(&url).await?, RedisRw::connect(&url).await?);
        let reader = here.lock("k").await?.downgrade(&LockOptions::new()).await?;
        let beside = there.read("k").await?;
        reader.renew().await?;
        let waiting = tokio::spawn(async move { there.lock("k").await });
        let has_a_place = async || server.ask(&["EXISTS", "{leasehold:k}:queue"]).await.number() == 1;
        eventually("the writer has a place", has_a_place).await;
        let _ = (reader.release().await?, beside.release().await?);
        let _ = waiting.await.expect("no panic")?.release().await?;
    }
    Ok(())
}

#[test]
async fn without_any_one_of_its_commands_it_is_refused_or_all_is_in_order_as_the_readme_says() {
    let servers = [needs("redis-server", Server::start(&[]).await)];
    let tell =
        async |urls: Vec<String>| Scenario::of(Some(&servers[0]), async |_| RedisRw::connect(&urls[0]).await).await;
    LeastUser::of(README).leave_out_each(&servers, &SILENT, tell).await;
}

#[test]
async fn the_rights_that_doctor_asks_for_are_those_of_the_readme() {
    LeastUser::of(README).is_one_with_doctor(&KIND, "redis-rw:").await;
}

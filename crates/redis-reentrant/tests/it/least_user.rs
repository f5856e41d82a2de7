//! What the README says of the least user.

use leasehold_redis_reentrant::{KIND, RedisReentrant};
use leasehold_testkit::redis::{LeastUser, Scenario, Server};
use leasehold_testkit::{needs, test};
use tokio::sync::OnceCell;

const README: &str = include_str!("../../README.md");

const SILENT: [&str; 2] = ["+type", "+unsubscribe"];

#[test]
async fn without_any_one_of_its_commands_it_is_refused_or_all_is_in_order_as_the_readme_says() {
    let servers = [needs("redis-server", Server::start(&[]).await)];
    let tell = async |urls: Vec<String>| {
        // Those who wait are sessions of one process, which the holder is not.
        let (there, here) = (OnceCell::new(), OnceCell::new());
        let session = async |number| {
            let process = if number == 0 { &there } else { &here };
            Ok(process.get_or_try_init(|| RedisReentrant::connect(&urls[0])).await?.session())
        };
        Scenario::of(None, session).await
    };
    LeastUser::of(README).leave_out_each(&servers, &SILENT, tell).await;
}

#[test]
async fn the_rights_that_doctor_asks_for_are_those_of_the_readme() {
    LeastUser::of(README).is_one_with_doctor(&KIND, "reentrant:").await;
}

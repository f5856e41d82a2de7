//! What the README says of the least user.

use leasehold_redis_single::KIND;
use leasehold_testkit::redis::{LeastUser, Scenario, Server};
use leasehold_testkit::{needs, test};

use crate::waiters::locker_at;

const README: &str = include_str!("../../README.md");

/// An inbox is never unsubscribed from.
const SILENT: [&str; 4] = ["+type", "+pubsub|numsub", "+unsubscribe", "+hlen"];

#[test]
async fn without_any_one_of_its_commands_it_is_refused_or_all_is_in_order_as_the_readme_says() {
    let servers = [needs("redis-server", Server::start(&[]).await)];
    let tell = async |urls: Vec<String>| Scenario::of(Some(&servers[0]), async |_| locker_at(&urls[0]).await).await;
    LeastUser::of(README).leave_out_each(&servers, &SILENT, tell).await;
}

#[test]
async fn the_rights_that_doctor_asks_for_are_those_of_the_readme() {
    LeastUser::of(README).is_one_with_doctor(&KIND, "").await;
}

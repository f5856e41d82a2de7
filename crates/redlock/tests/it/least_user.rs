//! What the README says of the least user. The test starts the servers it needs; without `redis-server` it is ignored.

use leasehold_redlock::Redlock;
use leasehold_testkit::redis::{LeastUser, Scenario, Server, Unreported};
use leasehold_testkit::{needs, test};
use tokio::sync::OnceCell;

const UNREPORTED: Unreported = Unreported {
    warnings: &[
        "Redis refuses subscriptions",
        "does not let a release serve those who wait",
        "whether the server evicts",
    ],
    silent: &["+type", "+unsubscribe"],
};

#[test]
async fn without_any_one_of_its_commands_it_is_refused_or_all_is_in_order_as_the_readme_says() {
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(needs("redis-server", Server::start(&[]).await));
    }
    let tell = async |urls: Vec<String>| {
        // Those who wait are tasks of one process, which the holder is not.
        let (there, here) = (OnceCell::new(), OnceCell::new());
        let locks = async |number| {
            let process = if number == 0 { &there } else { &here };
            Ok(process.get_or_try_init(|| Redlock::builder().nodes(&urls).connect()).await?.clone())
        };
        Scenario::of(None, locks).await
    };
    LeastUser::of(include_str!("../../README.md")).leave_out_each(&servers, UNREPORTED, tell).await;
}

//! What the README says of the least user.

use leasehold_redlock::Redlock;
use leasehold_testkit::redis::{LeastUser, Scenario};
use leasehold_testkit::{needs, test};
use tokio::sync::OnceCell;

use crate::bench::Nodes;

const SILENT: [&str; 2] = ["+type", "+unsubscribe"];

#[test]
async fn without_any_one_of_its_commands_it_is_refused_or_all_is_in_order_as_the_readme_says() {
    let Nodes(servers) = needs("redis-server", Nodes::start(3).await);
    let tell = async |urls: Vec<String>| {
        // Those who wait are tasks of one process, which the holder is not.
        let (there, here) = (OnceCell::new(), OnceCell::new());
        let locks = async |number| {
            let process = if number == 0 { &there } else { &here };
            Ok(process.get_or_try_init(|| Redlock::builder().nodes(&urls).connect()).await?.clone())
        };
        Scenario::of(None, locks).await
    };
    LeastUser::of(include_str!("../../README.md")).leave_out_each(&servers, &SILENT, tell).await;
}

use leasehold_testkit::needs;
use leasehold_testkit::{mysql, redis, test};

use crate::running::Running;

#[test(multi_thread)]
async fn a_late_write_to_a_row_is_refused() {
    let server = mysql::Server::needed(&[]).await;
    the_late_holder_is_refused(env!("CARGO_BIN_EXE_fenced_sql"), &server.url());
}

#[test(multi_thread)]
async fn a_late_write_to_a_hash_is_refused() {
    let server = needs("redis-server", redis::Server::start(&[]).await);
    the_late_holder_is_refused(env!("CARGO_BIN_EXE_fenced_redis"), &server.url());
}

fn the_late_holder_is_refused(program: &str, url: &str) {
    let told = Running::start(program, &[url]).rest();
    assert_eq!(told[0], "the next holder: Written", "{told:?}");
    assert!(told[1].starts_with("the late holder: Stale { seen: FencingToken("), "{told:?}");
    assert_eq!(told[2], "the balance is Some(120)", "{told:?}");
}

//! Functions of every kind are tests.

use leasehold_testkit::test;
use std::time::Duration;

#[test]
fn a_function_is_a_test() {}

#[test]
fn a_function_with_a_result_is_a_test() -> Result<(), std::num::ParseIntError> {
    "1".parse::<u8>().map(drop)
}

#[test]
async fn an_async_function_is_a_test() {
    tokio::task::yield_now().await;
}

#[test(multi_thread)]
async fn an_async_function_may_use_several_threads() -> Result<(), String> {
    tokio::task::block_in_place(|| ());
    tokio::task::yield_now().await;
    Ok(())
}

#[test(paused)]
async fn an_async_function_may_begin_with_time_paused() {
    let began = tokio::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert!(began.elapsed() >= Duration::from_secs(86_400));
}

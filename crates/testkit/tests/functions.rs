//! Functions of every kind are tests.

use std::time::Duration;

fn a_function_is_a_test() {}

fn a_function_with_a_result_is_a_test() -> Result<(), std::num::ParseIntError> {
    "1".parse::<u8>().map(drop)
}

async fn an_async_function_is_a_test() {
    tokio::task::yield_now().await;
}

async fn an_async_function_may_use_several_threads() -> Result<(), String> {
    tokio::task::block_in_place(|| ());
    tokio::task::yield_now().await;
    Ok(())
}

async fn an_async_function_may_begin_with_time_paused() {
    let began = tokio::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert!(began.elapsed() >= Duration::from_secs(86_400));
}

leasehold_testkit::main! {
    a_function_is_a_test,
    a_function_with_a_result_is_a_test,
    an_async_function_is_a_test,
    @multi_thread an_async_function_may_use_several_threads,
    @paused an_async_function_may_begin_with_time_paused,
}

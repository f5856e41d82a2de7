use futures::future::join_all;
use leasehold::FencingToken;
use leasehold::fenced::{Outcome, REDIS_WRITE};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Client, RedisResult, Script};

use crate::fenced::tokens_of;

const HASH: &str = "account:7";

async fn server() -> Server {
    needs("redis-server", Server::start(&[]).await)
}

async fn connected(server: &Server) -> MultiplexedConnection {
    let client = Client::open(server.url()).expect("a URL");
    client.get_multiplexed_async_connection().await.expect("a connection")
}

async fn write(redis: &mut MultiplexedConnection, token: u64, balance: u64) -> Outcome {
    let seen: u64 = script(redis, &[&token.to_string(), "balance", &balance.to_string()]).await.expect("an answer");
    Outcome::of(FencingToken::from(token), seen)
}

async fn script(redis: &mut MultiplexedConnection, arguments: &[&str]) -> RedisResult<u64> {
    let script = Script::new(REDIS_WRITE);
    let mut write = script.prepare_invoke();
    write.key(HASH);
    for argument in arguments {
        write.arg(*argument);
    }
    write.invoke_async(redis).await
}

async fn hash(redis: &mut MultiplexedConnection) -> (u64, u64) {
    redis.hmget(HASH, &["balance", "fence"]).await.expect("the fields")
}

#[test(multi_thread)]
async fn a_hash_refuses_a_late_write() {
    let server = server().await;
    let redis = &mut connected(&server).await;
    assert_eq!(write(redis, 5, 50).await, Outcome::Written);
    assert_eq!(write(redis, 5, 51).await, Outcome::Written, "the same holder");
    assert_eq!(write(redis, 9, 90).await, Outcome::Written, "the next holder");
    assert_eq!(write(redis, 5, 52).await, Outcome::Stale { seen: 9.into() }, "the late holder");
    assert_eq!(hash(redis).await, (90, 9));
    // Two tokens of 2^53 and above that differ would be one number of Lua. These are below, and differ by one.
    let (large, larger) = ((1 << 53) - 2, (1 << 53) - 1);
    assert_eq!(write(redis, larger, 91).await, Outcome::Written);
    assert_eq!(write(redis, large, 92).await, Outcome::Stale { seen: larger.into() });
    assert_eq!(hash(redis).await, (91, larger));
}

#[test(multi_thread)]
async fn what_is_no_write_of_a_hash_changes_nothing() {
    let server = server().await;
    let redis = &mut connected(&server).await;
    assert_eq!(write(redis, 5, 50).await, Outcome::Written);
    let too_large = (1_u64 << 53).to_string();
    let bad: [&[&str]; 9] = [
        &[],
        &["6"],
        &["6", "balance"],
        &["", "balance", "1"],
        &["-6", "balance", "1"],
        &["6.5", "balance", "1"],
        &["1.83853e+15", "balance", "1"],
        &["0x10", "balance", "1"],
        &[&too_large, "balance", "1"],
    ];
    for arguments in bad {
        let refused = script(redis, arguments).await.expect_err("it is refused").to_string();
        assert!(refused.contains("a fenced write takes"), "{arguments:?}: {refused}");
    }
    assert_eq!(hash(redis).await, (50, 5));
    assert_eq!(script(redis, &["6", "fence", "1", "balance", "60"]).await.expect("an answer"), 6);
    assert_eq!(hash(redis).await, (60, 6), "the fence is the token, whatever the caller writes there");
    let _: () = redis.hset(HASH, "fence", "none").await.expect("a field");
    let refused = script(redis, &["7", "balance", "70"]).await.expect_err("it is refused").to_string();
    assert!(refused.contains("is no token"), "{refused}");
}

#[test(multi_thread)]
async fn a_hash_never_goes_back_to_a_smaller_token() {
    let server = &server().await;
    let stale = join_all((0..8).map(|writer| async move {
        let redis = &mut connected(server).await;
        let (mut stale, mut before) = (0, 0);
        for token in tokens_of(writer, 2000) {
            match write(redis, token, token * 10).await {
                Outcome::Written => {}
                Outcome::Stale { seen } => {
                    assert!(seen.get() > token, "{seen} for {token}");
                    stale += 1;
                }
            }
            let (balance, fence) = hash(redis).await;
            assert!(fence >= before && balance == fence * 10, "{fence} after {before}, and {balance}");
            before = fence;
        }
        stale
    }));
    assert!(stale.await.into_iter().sum::<u64>() > 0, "no writer was late");
    assert_eq!(hash(&mut connected(server).await).await, (20_000, 2000));
}

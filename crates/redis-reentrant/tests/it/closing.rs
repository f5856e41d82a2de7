//! What closing, and a try, promise where the server is silent.

use std::time::Duration;

use leasehold_redis_reentrant::{RedisReentrant, Session};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Silenced, eventually, needs, test};

async fn silenced(server: &Server) -> (RedisReentrant, Silenced<Session>) {
    let answers_within = Duration::from_millis(300);
    let connect = async || {
        let builder = RedisReentrant::builder().url(server.url()).command_timeout(answers_within);
        builder.connect().await.unwrap()
    };
    let (ours, theirs) = (connect().await, connect().await);
    let silenced = Silenced { ours: ours.session(), beside: ours.session(), theirs: theirs.session(), answers_within };
    (ours, silenced)
}

#[test(multi_thread)]
async fn closing_ends_while_the_server_is_silent() {
    let server = needs("redis-server", Server::start(&[]).await);
    let (ours, silenced) = silenced(&server).await;
    silenced.closing_ends(|| server.pause(), ours.close()).await;
    server.resume();
    eventually("only the other client is connected", async || server.clients().await == 1).await;
    drop(silenced);
}

#[test(multi_thread)]
async fn tries_are_answered_while_the_server_is_silent() {
    let server = needs("redis-server", Server::start(&[]).await);
    let (_ours, silenced) = silenced(&server).await;
    silenced.tries_are_answered(|| server.pause()).await;
}

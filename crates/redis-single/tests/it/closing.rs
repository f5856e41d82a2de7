//! What a try promises where the server is silent, on a private server; without one it is ignored.

use std::time::Duration;

use leasehold_core::Backend;
use leasehold_redis_single::{Backed, RedisSingle};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Silenced, needs, test};

async fn silenced(server: &Server) -> Silenced<RedisSingle> {
    let connect = async || {
        let builder = RedisSingle::builder().url(server.url()).command_timeout(Duration::from_millis(300));
        builder.connect().await.unwrap()
    };
    let (ours, theirs) = (connect().await, connect().await);
    let answers_within = ours.engine().backend().answers_within();
    assert_eq!(answers_within, Duration::from_millis(300));
    Silenced { beside: ours.clone(), ours, theirs, answers_within }
}

#[test(multi_thread)]
async fn tries_are_answered_while_the_server_is_silent() {
    let server = needs("redis-server", Server::start(&[]).await);
    let silenced = silenced(&server).await;
    silenced.tries_are_answered(|| server.pause()).await;
}

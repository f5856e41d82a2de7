//! Connections to real servers, which the tests start; without `redis-server` they are ignored.

use leasehold_core::ErrorKind;
use leasehold_redis::{Script, ScriptArguments};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Proxy, needs, test};

use crate::stores::{heard, open};

fn key() -> ScriptArguments {
    ScriptArguments::default().text("k")
}

#[test]
async fn a_script_is_sent_as_source_only_when_the_server_does_not_know_it() {
    let server = needs("redis-server", Server::start(&[]).await);
    let connection = open(&server.url()).await.unwrap();
    for _ in 0..3 {
        heard(&connection, "{k}:lock").await.unwrap();
    }
    assert_eq!((server.calls("evalsha").await, server.calls("eval").await), (3, 1));
    server.ask(&["SCRIPT", "FLUSH"]).await;
    for _ in 0..3 {
        heard(&connection, "{k}:lock").await.unwrap();
    }
    assert_eq!((server.calls("evalsha").await, server.calls("eval").await), (6, 2));
}

#[test]
async fn a_command_is_never_sent_twice() {
    static COUNT: Script = Script::new(&["return { 'counted', tostring(redis.call('INCR', KEYS[1])) }"]);
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let connection = open(&proxy.url(&server.url())).await.unwrap();
    let count = async || connection.run(&COUNT, 1, key(), None).await;
    assert_eq!(count().await.unwrap().words(), ["counted", "1"]);
    proxy.drop_next_reply();
    assert_eq!(count().await.unwrap_err().kind(), ErrorKind::Indeterminate);
    assert_eq!(proxy.dropped_replies(), 1);
    // The driver has connected again by itself.
    assert_eq!(count().await.unwrap().words(), ["counted", "3"]);
}

//! Connections to real servers, which the tests start; without `redis-server` they are ignored.

use std::time::Duration;

use leasehold_core::ErrorKind;
use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::fred::types::Builder;
use leasehold_redis::fred::types::config::Config;
use leasehold_redis::{
    ConnectionSettings, Endpoint, Namespace, Notify, Script, ScriptArguments, Source, Store, StoreOptions,
};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{Proxy, eventually, needs, test};
use tokio::time::timeout;

static ECHO: Script = Script::new(&["return { 'heard', ARGV[1] }"]);

async fn open(url: &str) -> leasehold_core::Result<Store> {
    let endpoint = Endpoint::of(&Source::Url(url.to_owned()))?;
    let options = StoreOptions { functions: &[], notifications: Notify::Releases };
    Store::connect(&endpoint, &Namespace::default(), &ConnectionSettings::default(), options).await
}

fn key() -> ScriptArguments {
    ScriptArguments::default().text("k")
}

async fn echo(store: &Store, word: &str) -> leasehold_core::Result<String> {
    let arguments = ScriptArguments::default().text("{k}:lock").text(word);
    let reply = store.run(&ECHO, 1, arguments, None).await?;
    Ok(reply.words().join(" "))
}

async fn nobody_is_connected(server: &Server) {
    eventually("nobody is connected", async || server.clients().await == 0).await;
}

#[test]
async fn nobody_there_is_told_at_once_with_the_address() {
    let mut server = needs("redis-server", Server::start(&[]).await);
    server.kill();
    let error = open(&server.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let told = error.to_string();
    assert!(told.contains(&format!("redis://127.0.0.1:{}: nothing listens there", server.port())), "{told}");
}

#[test]
async fn a_server_that_hangs_does_not_hang_the_connection() {
    let server = needs("redis-server", Server::start(&[]).await);
    server.pause();
    let error = timeout(Duration::from_secs(30), open(&server.url())).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    server.resume();
    nobody_is_connected(&server).await;
}

#[test]
async fn failed_connections_leave_nothing() {
    let server = needs("redis-server", Server::start(&["--requirepass", "right"]).await);
    let port = server.port();
    for url in [format!("redis://127.0.0.1:{port}"), format!("redis://:wrong@127.0.0.1:{port}")] {
        assert_eq!(open(&url).await.unwrap_err().kind(), ErrorKind::Backend);
    }
    let error = open(&format!("redis://:right@127.0.0.1:{port}/200")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    let error = open(&format!("redis-cluster://:right@127.0.0.1:{port}")).await.unwrap_err();
    assert!(error.to_string().contains("use redis://"), "{error}");
    nobody_is_connected(&server).await;
}

#[test]
async fn a_connection_that_is_given_up_half_way_leaves_nothing() {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    proxy.delay(Duration::from_millis(20));
    for patience in (0..200).step_by(20) {
        let _ = timeout(Duration::from_millis(patience), open(&proxy.url(&server.url()))).await;
    }
    nobody_is_connected(&server).await;
}

#[test]
async fn the_last_clone_ends_the_connection() {
    let server = needs("redis-server", Server::start(&[]).await);
    let one = open(&server.url()).await.unwrap();
    let other = one.clone();
    drop(one);
    assert_eq!(echo(&other, "a").await.unwrap(), "heard a");
    assert_eq!(server.clients().await, 1);
    drop(other);
    nobody_is_connected(&server).await;
}

#[test]
async fn closing_ends_the_connection_for_all_clones() {
    let server = needs("redis-server", Server::start(&[]).await);
    let connection = open(&server.url()).await.unwrap();
    connection.clone().close().await;
    nobody_is_connected(&server).await;
    assert_eq!(echo(&connection, "a").await.unwrap_err().kind(), ErrorKind::Closed);
    connection.close().await;
}

#[test]
async fn a_borrowed_client_is_left_alone() {
    let server = needs("redis-server", Server::start(&[]).await);
    let own = Builder::from_config(Config::from_url(&server.url()).unwrap()).build().unwrap();
    own.init().await.unwrap();
    let settings = ConnectionSettings::default();
    let options = StoreOptions { functions: &[], notifications: Notify::Releases };
    let borrowed = Store::from_client(own.clone(), &settings, options);
    assert_eq!(echo(&borrowed, "a").await.unwrap(), "heard a");
    borrowed.close().await;
    assert_eq!(echo(&borrowed, "a").await.unwrap_err().kind(), ErrorKind::Closed);
    drop(borrowed);
    let again = Store::from_client(own.clone(), &settings, options);
    assert_eq!(echo(&again, "a").await.unwrap(), "heard a");
    assert_eq!(server.clients().await, 1);
    own.quit().await.unwrap();
}

#[test]
async fn a_script_is_sent_as_source_only_when_the_server_does_not_know_it() {
    let server = needs("redis-server", Server::start(&[]).await);
    let connection = open(&server.url()).await.unwrap();
    for _ in 0..3 {
        echo(&connection, "a").await.unwrap();
    }
    assert_eq!((server.calls("evalsha").await, server.calls("eval").await), (3, 1));
    server.ask(&["SCRIPT", "FLUSH"]).await;
    for _ in 0..3 {
        echo(&connection, "a").await.unwrap();
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

#[test]
async fn without_a_connection_it_is_certain_that_nothing_was_sent() {
    let mut server = needs("redis-server", Server::start(&[]).await);
    let connection = open(&server.url()).await.unwrap();
    server.kill();
    eventually("the loss is known", async || {
        let error = echo(&connection, "a").await.unwrap_err();
        error.kind() == ErrorKind::Unavailable && error.to_string().contains("no connection to redis://127.0.0.1")
    })
    .await;
    server.restart().await;
    eventually("it is connected again", async || echo(&connection, "a").await.is_ok()).await;
}

#[test]
async fn a_connection_through_which_nothing_comes_is_replaced() {
    let server = needs("redis-server", Server::start(&[]).await);
    let proxy = Proxy::start(server.port());
    let connection = open(&proxy.url(&server.url())).await.unwrap();
    echo(&connection, "a").await.unwrap();
    proxy.black_hole();
    assert_eq!(echo(&connection, "a").await.unwrap_err().kind(), ErrorKind::Indeterminate);
    eventually("it works again", async || echo(&connection, "a").await.is_ok()).await;
}

#[test]
async fn a_silent_server_costs_no_more_than_the_time_allowed() {
    let server = needs("redis-server", Server::start(&[]).await);
    let connection = open(&server.url()).await.unwrap();
    server.pause();
    let limit = Some(Duration::from_millis(100));
    let asked = connection.run(&ECHO, 1, key().text("a"), limit);
    let error = timeout(Duration::from_secs(20), asked).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    server.resume();
    eventually("it works again", async || echo(&connection, "a").await.is_ok()).await;
}

#[test]
async fn a_replica_is_told_by_a_typed_error_and_left_for_the_primary() {
    static WRITE: Script = Script::new(&[
        "local done = redis.pcall('SET', KEYS[1], 'x') if done.err then return { 'refused', done.err } end return { 'done' }",
    ]);
    let server = needs("redis-server", Server::start(&[]).await);
    let primary = needs("redis-server", Server::start(&[]).await);
    let connection = open(&server.url()).await.unwrap();
    let write = async || connection.run(&WRITE, 1, key(), None).await;
    assert_eq!(write().await.unwrap().words(), ["done"]);
    server.ask(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]).await;
    eventually("it is a replica", async || write().await.is_ok_and(|reply| reply.words()[0] == "refused")).await;
    let error = connection.script_error(&write().await.unwrap().words());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("read-only replica"), "{error}");
    server.ask(&["REPLICAOF", "NO", "ONE"]).await;
    eventually("it is a primary again", async || write().await.is_ok_and(|reply| reply.words() == ["done"])).await;
}

//! Connections to real servers.

use leasehold_core::{Error, ErrorKind, Result};
use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::fred::types::Builder;
use leasehold_redis::fred::types::config::{Config, ReconnectPolicy};
use leasehold_redis::{ConnectionSettings, Script, ScriptArguments, Store};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{Proxy, eventually, needs, shown, test};

use crate::stores::{RELEASES, heard, open};

const PASSWORD: &str = "swordfish-canary";
const APP: [&str; 9] = ["ACL", "SETUSER", "app", "reset", "on", ">swordfish-canary", "~*", "&*", "+@all"];
const OTHER_PASSWORD: [&str; 5] = ["ACL", "SETUSER", "app", "resetpass", ">other"];

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

/// Changes something for the user, and ends its connections. How to connect as it.
async fn change(server: &Server, words: &[&str]) -> String {
    assert!(!matches!(server.ask(words).await, Answer::Refused(_)), "{words:?}");
    server.ask(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    server.url().replace("redis://", &format!("redis://app:{PASSWORD}@"))
}

/// What a store tells that is refused for good.
async fn is_refused(store: &Store) -> Error {
    let ask = async || heard(store, "k").await;
    eventually("it is refused", async || ask().await.is_err_and(|error| !error.is_transient())).await;
    ask().await.unwrap_err()
}

async fn borrowing(url: &str) -> Result<Store> {
    let mut builder = Builder::from_config(Config::from_url(url).unwrap());
    let client = builder.set_policy(ReconnectPolicy::new_constant(0, 50)).build().unwrap();
    client.init().await.unwrap();
    Ok(Store::from_client(client, &ConnectionSettings::default(), RELEASES))
}

#[test]
async fn who_is_shut_out_is_told_why_until_it_is_let_in_again() {
    let server = needs("redis-server", Server::start(&[]).await);
    let address = format!("127.0.0.1:{}", server.port());
    for (borrows, shut_out) in
        [(false, &OTHER_PASSWORD[..]), (true, &OTHER_PASSWORD), (false, &["ACL", "DELUSER", "app"])]
    {
        let url = change(&server, &APP).await;
        let store = if borrows { borrowing(&url).await } else { open(&url).await }.unwrap();
        heard(&store, "k").await.unwrap();
        change(&server, shut_out).await;
        let error = is_refused(&store).await;
        let text = shown(&error);
        assert_eq!(error.kind(), ErrorKind::Backend, "{text}");
        let told = ["WRONGPASS", "wrong user or password", "lost", &address];
        assert!(told.iter().all(|word| text.contains(word)), "{text}");
        assert!(!text.contains(PASSWORD), "{text}");
        change(&server, &APP).await;
        eventually("it works again", async || heard(&store, "k").await.is_ok()).await;
    }
}

#[test]
async fn what_a_server_told_that_is_gone_since_is_not_why_there_is_no_connection_now() {
    let mut server = needs("redis-server", Server::start(&[]).await);
    let store = open(&change(&server, &APP).await).await.unwrap();
    let kind = async || heard(&store, "k").await.err().map(|error| error.kind());
    change(&server, &OTHER_PASSWORD).await;
    is_refused(&store).await;
    server.kill();
    eventually("nobody refuses any more", async || kind().await == Some(ErrorKind::Unavailable)).await;
    // The same server, which knows nobody of that name.
    server.restart().await;
    assert!(shown(&is_refused(&store).await).contains("WRONGPASS"));
    change(&server, &APP).await;
    eventually("it works again", async || kind().await.is_none()).await;
    server.pause();
    let mut told = None;
    while told != Some(ErrorKind::Unavailable) {
        told = kind().await;
        assert_ne!(told, Some(ErrorKind::Backend));
    }
}

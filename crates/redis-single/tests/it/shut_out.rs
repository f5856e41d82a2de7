//! A password that is changed, or a right that is taken, while a client is connected. The tests start the servers they
//! need; without `redis-server` they are ignored.

use std::error::Error as _;
use std::time::Duration;

use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::fred::types::Builder;
use leasehold_redis::fred::types::config::{Config, ReconnectPolicy};
use leasehold_redis_single::{Error, ErrorKind, LockKey, LockOptions, LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::{Answer, Recorder, Sentinels, Server, ask};
use leasehold_testkit::{eventually, needs, test};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PASSWORD: &str = "swordfish-canary";
const APP: [&str; 8] = ["ACL", "SETUSER", "app", "on", ">swordfish-canary", "~*", "&*", "+@all"];
const ROOT: [&str; 8] = ["ACL", "SETUSER", "root", "on", ">root", "~*", "&*", "+@all"];
const OTHER_PASSWORD: [&str; 5] = ["ACL", "SETUSER", "app", "resetpass", ">other"];

/// Asks as somebody whom nobody shuts out.
async fn as_root(server: &Server, words: &[&str]) -> Answer {
    let answer = ask(server.port(), &[&["AUTH", "root", "root"], words]).await.unwrap();
    assert!(!matches!(answer, Answer::Refused(_)), "{words:?}: {answer:?}");
    answer
}

/// Changes something, and breaks all connections.
async fn change(server: &Server, words: &[&str]) {
    as_root(server, words).await;
    for kind in ["normal", "pubsub"] {
        as_root(server, &["CLIENT", "KILL", "TYPE", kind]).await;
    }
}

async fn prepare(server: &Server) {
    assert_eq!(server.ask(&APP).await.text(), "OK");
    assert_eq!(server.ask(&ROOT).await.text(), "OK");
}

fn login(url: &str, user: &str) -> String {
    url.replacen("://", &format!("://{user}"), 1)
}

/// Begins to wait without a limit.
fn wait(locks: &RedisSingle, key: &str) -> JoinHandle<Result<()>> {
    let (locks, key) = (locks.clone(), LockKey::new(key).unwrap());
    tokio::spawn(async move { locks.acquire(&key, &LockOptions::new()).await.map(drop) })
}

/// How the wait ends.
async fn end(waiting: JoinHandle<Result<()>>) -> Result<()> {
    timeout(Duration::from_secs(60), waiting).await.expect("the wait ends").expect("no panic")
}

/// That a try is refused in these words.
async fn is_told(locks: &RedisSingle, key: &str, words: &[&str]) {
    let refused = async || locks.try_lock(key).await.err().is_some_and(|error| !error.is_transient());
    eventually("it is refused", refused).await;
    says(&locks.try_lock(key).await.unwrap_err(), words);
}

fn says(error: &Error, words: &[&str]) {
    let told = format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default());
    assert_eq!(error.kind(), ErrorKind::Backend, "{told}");
    for word in words {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(!format!("{told} {error:?} {:?}", error.source()).contains(PASSWORD), "{told}");
}

/// With a client of the caller's own.
async fn borrowing(url: &str) -> RedisSingle {
    let mut builder = Builder::from_config(Config::from_url(url).unwrap());
    let client = builder.set_policy(ReconnectPolicy::new_constant(0, 50)).build().unwrap();
    client.init().await.unwrap();
    RedisSingle::from_client(client)
}

async fn works(locks: &RedisSingle, key: &str) {
    eventually("it works", async || locks.try_lock(key).await.is_ok_and(|guard| guard.is_some())).await;
}

#[test(deep)]
async fn a_waiter_whose_user_is_refused_learns_why_and_goes_on_once_it_is_let_in_again() -> Result<()> {
    let app = format!("app:{PASSWORD}@");
    let wrong = &["WRONGPASS", "wrong user or password"];
    for (row, (user, shut_out, let_in, told)) in [
        (&*app, &OTHER_PASSWORD[..], &APP[..], wrong),
        (&app, &OTHER_PASSWORD, &APP, wrong),
        (&app, &["ACL", "DELUSER", "app"], &APP, wrong),
        (&app, &["ACL", "SETUSER", "app", "off"], &APP, wrong),
        ("", &["CONFIG", "SET", "requirepass", "x"], &["CONFIG", "SET", "requirepass", ""], &["NOAUTH", "password"]),
        ("", &["ACL", "SETUSER", "default", "-ping"], &["ACL", "SETUSER", "default", "+ping"], &["NOPERM", "ACL"]),
    ]
    .into_iter()
    .enumerate()
    {
        let server = needs("redis-server", Server::start(&[]).await);
        prepare(&server).await;
        let holder = RedisSingle::connect(&login(&server.url(), "root:root@")).await?;
        let _held = holder.lock("k").await?;
        let url = login(&server.url(), user);
        let locks = if row == 0 { borrowing(&url).await } else { RedisSingle::connect(&url).await? };
        let mine = locks.lock("mine").await?;
        let (before, waiting) = (server.calls("evalsha").await, wait(&locks, "k"));
        eventually("it waits", async || server.calls("evalsha").await > before).await;

        change(&server, shut_out).await;
        let address = format!("127.0.0.1:{}", server.port());
        let all = [&told[..], &["lost", &address]].concat();
        says(&end(waiting).await.unwrap_err(), &all);
        is_told(&locks, "other", &all).await;
        says(&end(wait(&locks, "k")).await.unwrap_err(), &all);
        assert_eq!(mine.renew().await.unwrap_err().kind(), ErrorKind::Backend);
        assert!(mine.is_held(), "refused is not lost");

        as_root(&server, let_in).await;
        works(&locks, "other").await;
        mine.renew().await?;
    }
    Ok(())
}

#[test(deep)]
async fn a_server_that_is_gone_since_is_waited_for_again() -> Result<()> {
    let mut server = needs("redis-server", Server::start(&[]).await);
    prepare(&server).await;
    let locks = RedisSingle::connect(&login(&server.url(), &format!("app:{PASSWORD}@"))).await?;
    change(&server, &OTHER_PASSWORD).await;
    is_told(&locks, "k", &["WRONGPASS"]).await;
    server.kill();
    let waits = async || locks.try_lock("k").await.is_err_and(|error| error.kind() == ErrorKind::Unavailable);
    eventually("nobody refuses any more", waits).await;
    let waiting = wait(&locks, "k");
    // The same server, which knows nobody of that name.
    server.restart().await;
    says(&end(waiting).await.unwrap_err(), &["WRONGPASS"]);
    prepare(&server).await;
    works(&locks, "k").await;
    // What was told then is not why there is no connection now.
    server.pause();
    let mut told = None;
    while told != Some(ErrorKind::Unavailable) {
        told = locks.try_lock("k").await.err().map(|error| error.kind());
        assert_ne!(told, Some(ErrorKind::Backend));
    }
    Ok(())
}

#[test(deep)]
async fn a_primary_behind_sentinels_that_shuts_out_says_so_and_so_does_its_successor() -> Result<()> {
    let mut set = needs("redis-server", Sentinels::start().await);
    prepare(&set.primary).await;
    prepare(&set.replica).await;
    let locks = RedisSingle::connect(&login(&set.url(), &format!("app:{PASSWORD}@"))).await?;
    works(&locks, "k").await;
    change(&set.primary, &OTHER_PASSWORD).await;
    is_told(&locks, "k", &["WRONGPASS", "wrong user or password"]).await;
    as_root(&set.primary, &APP).await;
    works(&locks, "k").await;

    as_root(&set.replica, &OTHER_PASSWORD).await;
    let waiting = wait(&locks, "k");
    set.primary.kill();
    let _ = end(waiting).await;
    is_told(&locks, "k", &["WRONGPASS", "wrong user or password"]).await;
    as_root(&set.replica, &APP).await;
    works(&locks, "k").await;
    Ok(())
}

#[test(deep)]
async fn sentinels_that_shut_out_are_warned_of_and_count_once_the_primary_is_gone() -> Result<()> {
    let recorder = Recorder::start();
    let mut set = needs("redis-server", Sentinels::start().await);
    for watcher in set.watchers() {
        prepare(watcher).await;
    }
    let url = format!("{}&sentinelUsername=app&sentinelPassword={PASSWORD}", set.url());
    let locks = RedisSingle::connect(&url).await?;
    for watcher in set.watchers() {
        change(watcher, &OTHER_PASSWORD).await;
    }
    eventually("a warning", async || recorder.recorded().contains("a Sentinel refuses to say who is the primary"))
        .await;
    assert!(!recorder.recorded().contains(PASSWORD), "{}", recorder.recorded());
    works(&locks, "k").await;
    set.primary.kill();
    is_told(&locks, "k", &["WRONGPASS", "wrong user or password"]).await;
    for watcher in set.watchers() {
        as_root(watcher, &APP).await;
    }
    works(&locks, "k").await;
    Ok(())
}

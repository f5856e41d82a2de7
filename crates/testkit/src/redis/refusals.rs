use std::time::Duration;

use leasehold_core::conformance::error_text;
use leasehold_core::{
    Admin, Attempt, Backend, Claim, ErrorKind, LockKey, LockOptions, Locker, LockerExt, LossReason, Mode, Notification,
    Result, Wait,
};
use tokio::time::timeout;

use super::recorder::Recorder;
use super::server::Server;
use crate::launch::resp::Answer;
use crate::waiting::{PATIENCE, eventually};

/// Takes commands from a holder, each given as a rule and as how a refusal names it: the next renewal names it too, and
/// the loss is told at the deadline.
///
/// `connect` gets the URL of a user who may do everything else.
pub async fn commands_are_taken_from_a_holder<L: Locker>(
    server: &Server,
    taken: &[(&str, &str)],
    connect: impl AsyncFn(String) -> Result<L>,
) -> Result<()> {
    for (denied, named) in taken {
        let locks = connect(user(server, &[]).await).await?;
        let ttl = LockOptions::new().ttl(Duration::from_secs(3));
        let guard = locks.acquire(&LockKey::new("k")?, &ttl).await?.expect("a free key");
        server.ask(&["ACL", "SETUSER", "app", denied]).await;
        // As long as there is nothing to prolong, nothing is refused.
        eventually("a renewal is refused", async || guard.renew().await.is_err()).await;
        let error = guard.renew().await.expect_err(denied);
        assert_eq!(error.kind(), ErrorKind::Backend, "{denied}: {error}");
        assert!(error_text(&error).contains(named), "{denied}: {}", error_text(&error));
        // Refused is not lost: the lease is still ours.
        assert!(guard.is_held(), "{denied}");
        assert_eq!(guard.lost().await, LossReason::Unreachable, "{denied}");
        server.ask(&["FLUSHALL"]).await;
    }
    Ok(())
}

/// Has a user free a key by force who may not publish: the key is free, and a warning says why nobody was told.
pub async fn a_release_by_force_signals_nobody<L: Locker + Admin>(
    server: &Server,
    connect: impl AsyncFn(String) -> Result<L>,
) -> Result<()> {
    let locks = connect(user(server, &[]).await).await?;
    let key = LockKey::new("k")?;
    let guard = locks.acquire(&key, &LockOptions::new()).await?.expect("a free key");
    server.ask(&["ACL", "SETUSER", "app", "-publish"]).await;
    let log = Recorder::start();
    assert_eq!(locks.force_release(&key).await?.holders.len(), 1);
    assert!(locks.inspect(&key).await?.holders.is_empty());
    let warned = |line: &str| line.starts_with("refused=") && line.contains("(PUBLISH)");
    assert!(log.recorded().lines().any(warned), "{}", log.recorded());
    drop(guard);
    Ok(())
}

/// Takes a key from its holder by force, all of it and by its token: a process that listens for the key is told each time.
pub async fn a_release_by_force_is_told(holder: &impl Backend, operator: &impl Backend) -> Result<()> {
    let key = LockKey::new("k")?;
    for by_token in [false, true] {
        let claim = Claim::new(&key, Mode::Exclusive, Duration::from_secs(3600));
        let Attempt::Granted { epoch } = holder.try_acquire(&claim).await? else { panic!("a free key") };
        let mut told = holder.notifications().expect("a store that tells").subscribe(&key).await?;
        let ended = operator.force_release(&key, epoch.filter(|_| by_token)).await?;
        assert_eq!(ended.holders.len(), 1, "{by_token}");
        let told = timeout(PATIENCE, told.next()).await.expect("the holder's process is told");
        assert_eq!(told, Notification::Freed, "{by_token}");
    }
    Ok(())
}

/// A user who may do all, but for these commands, each with its `-`. How to connect as it.
pub async fn user(server: &Server, denied: &[&str]) -> String {
    let words = [&["ACL", "SETUSER", "app", "reset", "on", ">pw", "+@all", "~*", "&*"], denied].concat();
    assert_eq!(server.ask(&words).await, Answer::Text("OK".into()));
    server.url().replace("redis://", "redis://app:pw@")
}

/// Has users claim who may not send one of these commands, each given with its `-`: they leave no lock behind.
pub async fn a_claim_that_is_refused_leaves_no_lock<L: Locker>(
    server: &Server,
    denied: &[&str],
    connect: impl AsyncFn(String) -> Result<L>,
) -> Result<()> {
    for denied in denied {
        let error = connect(user(server, &[denied]).await).await?.try_lock("k").await.expect_err(denied);
        assert_eq!(error.kind(), ErrorKind::Backend, "{denied}: {}", error_text(&error));
        assert_eq!(server.ask(&["EXISTS", "{leasehold:k}:lock"]).await.number(), 0, "{denied}");
    }
    Ok(())
}

/// Writes something foreign under a name of the key `k`: it is named to whoever asks for the key, and left alone.
pub async fn what_somebody_else_wrote_is_named_and_left_alone<L: Locker + Admin>(
    server: &Server,
    locks: &L,
    foreign: &[&[&str]],
) -> Result<()> {
    let (key, patient) = (LockKey::new("k")?, LockOptions::new().wait(Wait::UpTo(PATIENCE)));
    for words in foreign {
        let (name, written) = (words[1], server.ask(words).await);
        assert!(!matches!(written, Answer::Refused(_)), "{words:?}: {written:?}");
        let before = server.ask(&["DUMP", name]).await;
        let mut refused = vec![locks.acquire(&key, &patient).await.map(drop)];
        if name.ends_with(":lock") {
            refused.extend([locks.inspect(&key).await.map(drop), locks.force_release(&key).await.map(drop)]);
            assert!(locks.list("", None).await?.keys.is_empty(), "{words:?}");
        }
        for refused in refused {
            let error = refused.expect_err("it is not ours");
            assert_eq!(error.kind(), ErrorKind::Backend, "{words:?}: {error}");
            assert!(error.to_string().contains(&format!("`{name}`")), "{words:?}: {error}");
        }
        assert_eq!(server.ask(&["DUMP", name]).await, before, "{words:?}");
        assert_eq!(server.ask(&["PTTL", name]).await.number(), -1, "{words:?}");
        assert_eq!(server.ask(&["DBSIZE"]).await.number(), 1, "{words:?}: something was left behind");
        server.ask(&["DEL", name]).await;
    }
    Ok(())
}

/// Overwrites the entry of one of three grants with something of another type: that one is lost, and nothing else changes.
pub async fn a_grant_that_was_overwritten_is_lost_and_touches_no_other<L: Locker>(
    server: &Server,
    locks: &L,
) -> Result<()> {
    let options = LockOptions::new().ttl(Duration::from_secs(2));
    let mut guards = Vec::new();
    for name in ["a", "b", "c"] {
        guards.push(locks.acquire(&LockKey::new(name)?, &options).await?.expect("a free key"));
    }
    server.ask(&["DEL", "{leasehold:b}:lock"]).await;
    server.ask(&["SADD", "{leasehold:b}:lock", "theirs"]).await;
    assert_eq!(guards[1].lost().await, LossReason::Stolen);
    let later = server.calls("pexpire").await + 4;
    eventually("the others are renewed", async || server.calls("pexpire").await >= later).await;
    assert!(guards[0].is_held() && guards[2].is_held());
    drop(guards);
    eventually("their keys are free", async || server.ask(&["EXISTS", "{leasehold:a}:lock"]).await.number() == 0).await;
    assert_eq!(server.ask(&["SCARD", "{leasehold:b}:lock"]).await.number(), 1);
    Ok(())
}

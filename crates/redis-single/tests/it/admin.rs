//! Keys of all kinds, and what operators see of them. The tests start the servers they need; without `redis-server`
//! they are ignored.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_redis_single::{
    Admin, Cursor, ErrorKind, LockGuard, LockKey, LockOptions, LockerExt, RedisSingle, Result,
};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{needs, test};

async fn all(locks: &RedisSingle, prefix: &str) -> Result<(BTreeSet<LockKey>, usize)> {
    let (mut keys, mut pages, mut after) = (BTreeSet::new(), 0, None);
    loop {
        let page = locks.list(prefix, after.as_ref()).await?;
        keys.extend(page.keys.into_iter().map(|holders| holders.key));
        pages += 1;
        after = page.next;
        if after.is_none() {
            return Ok((keys, pages));
        }
    }
}

#[test]
async fn odd_keys_are_ordinary() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let longest = "é}".repeat(85);
    let odd = [
        "{}", "}", "{", "}{", "a}b", "{a", "%", "%7D", "%00", "a\0b", "\0", "\n", "a\r\nb", " ", "k ", "K", "k", "é",
        "e\u{301}", "*", "k*", "[a-z]", "\\", "?", ":", ":lock", "}:lock", "a:b", "\u{200b}", "😀", &longest,
    ];
    let mut guards = Vec::new();
    for text in odd {
        let guard = locks.try_lock(text).await?;
        guards.push(guard.unwrap_or_else(|| panic!("{text:?} is another key's")));
        assert_eq!(locks.inspect(&LockKey::new(text)?).await?.holders.len(), 1, "{text:?}");
    }
    let held: BTreeSet<LockKey> = odd.iter().map(|text| LockKey::new(*text)).collect::<Result<_>>()?;
    assert_eq!(all(&locks, "").await?.0, held);
    for text in odd {
        let expected: BTreeSet<LockKey> = held.iter().filter(|key| key.as_str().starts_with(text)).cloned().collect();
        assert_eq!(all(&locks, text).await?.0, expected, "{text:?}");
    }
    for guard in guards {
        let _ = guard.release().await?;
    }
    assert!(all(&locks, "").await?.0.is_empty());
    Ok(())
}

#[test]
async fn a_long_list_comes_in_pages_and_shows_only_what_is_held_here() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let other = RedisSingle::builder().url(server.url()).namespace("other").connect().await?;
    let mut guards: Vec<LockGuard> = Vec::new();
    for number in 0..1500 {
        guards.push(locks.lock(format!("k/{number}")).await?);
    }
    let _elsewhere = other.lock("k/elsewhere").await?;
    // Each leaves its counter behind.
    for guard in guards.drain(1000..) {
        let _ = guard.release().await?;
    }
    server.ask(&["SADD", "{leasehold:k/foreign}:lock", "theirs"]).await;
    let (keys, pages) = all(&locks, "k/").await?;
    assert_eq!(keys, guards.iter().map(|guard| guard.key().clone()).collect());
    assert!(pages > 1);
    assert_eq!(all(&locks, "k/99").await?.0.len(), 11);
    assert!(all(&locks, "nothing").await?.0.is_empty());
    assert_eq!(all(&other, "").await?.0.len(), 1);
    Ok(())
}

#[test]
async fn cursors_that_no_list_gave_are_refused() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    for cursor in ["", "0", "x", " x", " -1", "\0"] {
        let error = locks.list("", Some(&Cursor(cursor.into()))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{cursor:?}");
    }
    let error = locks.list("", Some(&Cursor(" 99999999999999999999 0".into()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    Ok(())
}

#[test]
async fn a_holder_is_shown_with_all_that_it_said_of_itself() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let key = LockKey::new("k")?;
    let options = LockOptions::new().label("web-1 \"a\"\n").reason("it's 5 o'clock\0").ttl(Duration::from_secs(50));
    let guard = locks.acquire(&key, &options).await?.unwrap();
    let seen = locks.inspect(&key).await?;
    let [holder] = &seen.holders[..] else { panic!("{seen:?}") };
    assert_eq!(holder.token, guard.fencing_token());
    assert_eq!((holder.label.as_deref(), holder.reason.as_deref()), (Some("web-1 \"a\"\n"), Some("it's 5 o'clock\0")));
    assert!(holder.remaining.is_some_and(|left| left > Duration::from_secs(5) && left <= Duration::from_secs(50)));
    Ok(())
}

#[test]
async fn what_is_written_is_what_the_readme_says() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let locks = RedisSingle::connect(&server.url()).await?;
    let options = LockOptions::new().label("web-1").ttl(Duration::from_secs(50));
    let guard = locks.acquire(&LockKey::new("a b")?, &options).await?.unwrap();
    let epoch = guard.fencing_token().unwrap().epoch().to_string();
    let entry = server.ask(&["GET", "{leasehold:a%20b}:lock"]).await;
    let parts: Vec<&str> = entry.text().splitn(3, ' ').collect();
    let [owner, number, metadata] = parts[..] else { panic!("{entry:?}") };
    assert!(owner.len() == 32 && owner.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(number, epoch);
    let metadata: serde_json::Value = serde_json::from_str(metadata).unwrap();
    assert_eq!(metadata["label"], "web-1");
    assert!(metadata["since"].is_u64() && metadata.get("reason").is_none());
    assert_eq!(server.ask(&["GET", "{leasehold:bgcm}:epoch"]).await.text(), format!("epoch {epoch}"));
    let left = server.ask(&["PTTL", "{leasehold:a%20b}:lock"]).await.number();
    assert!(left > 0 && left <= 50_000, "{left}");
    locks.force_release(guard.key()).await?;
    assert_eq!(server.ask(&["GET", "{leasehold:a%20b}:forced"]).await.text(), owner);
    let mut names = match server.ask(&["KEYS", "*"]).await {
        Answer::List(names) => names.iter().map(|name| name.text().to_owned()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    names.sort();
    assert_eq!(names, ["{leasehold:a%20b}:forced", "{leasehold:bgcm}:epoch"]);
    Ok(())
}

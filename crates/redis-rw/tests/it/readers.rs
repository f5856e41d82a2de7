//! What is special to readers beside writers in Redis.

use std::time::Duration;

use leasehold_redis_rw::{
    Attempt, Backend, Claim, ErrorKind, LeaseStatus, LockKey, Mode, OwnerId, RedisRw, RedisRwBackend, Result,
    RwLockerExt,
};
use leasehold_testkit::redis::{
    Answer, Server, a_release_by_force_is_told, what_somebody_else_wrote_is_named_and_left_alone,
};
use leasehold_testkit::{eventually, needs, test};

const LOCK: &str = "{leasehold:k}:lock";
const FENCE: &str = "{leasehold:afmc}:epoch";
const READERS: &str = "{leasehold:k}:readers";
const LINE: &str = "{leasehold:k}:queue";

fn key() -> LockKey {
    LockKey::new("k").unwrap()
}

async fn server() -> Server {
    needs("redis-server", Server::start(&[]).await)
}

async fn store(server: &Server) -> Result<RedisRwBackend> {
    RedisRw::builder().url(server.url()).backend().await
}

fn claim(mode: Mode, ttl: Duration) -> Claim {
    Claim { waits: true, ..Claim::new(&key(), mode, ttl) }
}

fn reader() -> Claim {
    claim(Mode::Shared, Duration::from_secs(3600))
}

fn writer() -> Claim {
    claim(Mode::Exclusive, Duration::from_secs(3600))
}

async fn granted(store: &RedisRwBackend, claim: &Claim) -> Result<u64> {
    loop {
        match store.try_acquire(claim).await? {
            Attempt::Granted { epoch } => return Ok(epoch.unwrap()),
            Attempt::AHEAD_OF_THE_CLOCK => {}
            other => panic!("{:?} was answered {other:?}", claim.mode),
        }
    }
}

async fn queued(store: &RedisRwBackend, claim: &Claim) -> Result<()> {
    let attempt = store.try_acquire(claim).await?;
    assert!(matches!(attempt, Attempt::Queued { .. }), "{:?} was answered {attempt:?}", claim.mode);
    Ok(())
}

async fn release(store: &RedisRwBackend, claim: &Claim) -> Result<()> {
    assert_eq!(store.release(&claim.grant(None)).await?, LeaseStatus::Held);
    Ok(())
}

/// Who of these claims has an entry in the server.
async fn holding(server: &Server, claims: &[&Claim]) -> Vec<bool> {
    let Answer::List(entries) = server.ask(&["HGETALL", LOCK]).await else { panic!("no list") };
    let all: String = entries.iter().map(Answer::text).collect();
    claims.iter().map(|claim| all.contains(&claim.owner.to_hex())).collect()
}

#[test]
async fn an_acquisition_without_waiting_and_its_release_cost_one_command_each() -> Result<()> {
    let server = server().await;
    let locks = RedisRw::connect(&server.url()).await?;
    let _ = locks.read("k").await?.release().await?;
    let before = server.scripts().await;
    for _ in 0..10 {
        let _ = locks.read("k").await?.release().await?;
        let _ = locks.write("k").await?.release().await?;
    }
    assert_eq!(server.scripts().await - before, 40);
    assert_eq!(server.ask(&["KEYS", "*"]).await, Answer::List(vec![Answer::Text(FENCE.into())]));
    Ok(())
}

#[test]
async fn a_reader_that_leaves_beside_a_dead_one_lets_the_writer_in_at_once() -> Result<()> {
    let server = server().await;
    let store = store(&server).await?;
    let (lives, dies, waits) = (reader(), claim(Mode::Shared, Duration::from_millis(200)), writer());
    granted(&store, &lives).await?;
    granted(&store, &dies).await?;
    queued(&store, &waits).await?;
    let gone = async || store.inspect(&key()).await.unwrap().holders.len() == 1;
    eventually("the lease of one is over", gone).await;
    release(&store, &lives).await?;
    assert_eq!(holding(&server, &[&lives, &dies, &waits]).await, [false, false, true]);
    Ok(())
}

#[test]
async fn a_writer_that_waits_does_not_go_through_all_readers_whenever_somebody_asks_or_leaves() -> Result<()> {
    let server = server().await;
    let store = store(&server).await?;
    let readers: Vec<_> = (0..50).map(|_| reader()).collect();
    for reader in &readers {
        granted(&store, reader).await?;
    }
    let (first, second) = (writer(), reader());
    let before = server.calls("hgetall").await;
    // The newest leave first: whichever is looked at, it is gone next.
    for reader in readers[20..].iter().rev() {
        queued(&store, &first).await?;
        queued(&store, &second).await?;
        release(&store, reader).await?;
    }
    assert_eq!(server.calls("hgetall").await, before);
    for reader in &readers[..20] {
        queued(&store, &first).await?;
        release(&store, reader).await?;
    }
    assert_eq!(holding(&server, &[&first, &second]).await, [true, false]);
    release(&store, &first).await?;
    release(&store, &second).await?;
    assert_eq!(server.ask(&["KEYS", "*"]).await, Answer::List(vec![Answer::Text(FENCE.into())]));
    Ok(())
}

#[test]
async fn where_readers_are_listed_may_be_lost_or_wrong_and_lets_no_writer_in() -> Result<()> {
    let server = server().await;
    let store = store(&server).await?;
    let stranger = "0123456789abcdef0123456789abcdef";
    for wrong in [
        &[][..],
        &[&["DEL", READERS][..]],
        &[&["DEL", READERS], &["SET", READERS, "x"]],
        &[&["DEL", READERS], &["ZADD", READERS, "99999999999999", stranger]],
        &[&["ZADD", READERS, "99999999999999", stranger, "99999999999998", "writer"]],
    ] {
        let readers: Vec<_> = (0..30).map(|_| reader()).collect();
        let mut newest = 0;
        for reader in &readers {
            newest = granted(&store, reader).await?;
        }
        for words in wrong {
            server.ask(words).await;
        }
        // A reader that nobody has listed, in the place of one that was.
        let (attached, last) = (Claim { owner: OwnerId::random(), ..reader() }, readers[29].grant(Some(newest)));
        let taken = store.take_over(&last, attached.owner, Duration::from_secs(3600)).await?;
        assert_eq!(taken, LeaseStatus::Held);
        let waits = writer();
        for reader in readers[..29].iter().chain([&attached]) {
            queued(&store, &waits).await?;
            release(&store, reader).await?;
        }
        assert_eq!(holding(&server, &[&waits]).await, [true], "{wrong:?}");
        release(&store, &waits).await?;
        assert_eq!(server.ask(&["KEYS", "*"]).await, Answer::List(vec![Answer::Text(FENCE.into())]), "{wrong:?}");
    }
    Ok(())
}

#[test]
async fn all_wait_in_one_line_and_readers_next_to_each_other_read_together() -> Result<()> {
    let server = server().await;
    let store = store(&server).await?;
    let (first, one, two, next, last) = (writer(), reader(), reader(), writer(), reader());
    granted(&store, &first).await?;
    for waiting in [&one, &two, &next, &last] {
        queued(&store, waiting).await?;
    }
    let all = [&one, &two, &next, &last];
    release(&store, &first).await?;
    assert_eq!(holding(&server, &all).await, [true, true, false, false]);
    release(&store, &one).await?;
    assert_eq!(holding(&server, &all).await, [false, true, false, false]);
    release(&store, &two).await?;
    assert_eq!(holding(&server, &all).await, [false, false, true, false]);
    release(&store, &next).await?;
    assert_eq!(holding(&server, &all).await, [false, false, false, true]);
    release(&store, &last).await?;
    assert_eq!(server.ask(&["EXISTS", LOCK, LINE]).await.number(), 0);
    Ok(())
}

#[test]
async fn a_downgrade_has_a_number_also_where_the_counter_is_as_far_ahead_as_it_may_be() -> Result<()> {
    let server = server().await;
    let store = store(&server).await?;
    let first = writer();
    let epoch = granted(&store, &first).await?;
    // As after the clock was set back by half a second.
    server.ask(&["SET", FENCE, &format!("epoch {}", epoch + 8000)]).await;
    let downgraded = store.downgrade(&first.grant(Some(epoch)), &reader()).await?;
    assert_eq!(downgraded, Attempt::Granted { epoch: Some(epoch + 8001) });
    Ok(())
}

#[test]
async fn readers_that_died_are_removed_where_no_writer_comes() -> Result<()> {
    let server = server().await;
    let store = store(&server).await?;
    for _ in 0..300 {
        let dies = claim(Mode::Shared, Duration::from_millis(50));
        while !matches!(store.try_acquire(&dies).await?, Attempt::Granted { .. }) {}
    }
    granted(&store, &reader()).await.ok();
    let over = async || store.inspect(&key()).await.unwrap().holders.len() <= 1;
    eventually("their leases are over", over).await;
    for _ in 0..64 {
        let lives = reader();
        while !matches!(store.try_acquire(&lives).await?, Attempt::Granted { .. }) {}
    }
    let left = server.ask(&["HLEN", LOCK]).await.number();
    assert!(left <= 1 + 1 + 64 + 64, "{left} fields");
    Ok(())
}

#[test]
async fn what_somebody_else_wrote_under_a_name_is_refused_and_left_alone() -> Result<()> {
    let server = server().await;
    let locks = RedisRw::connect(&server.url()).await?;
    let foreign = [
        &["SET", LOCK, "0123456789abcdef0123456789abcdef 7 {}"][..],
        &["HSET", LOCK, "owner", "somebody"],
        &["RPUSH", LOCK, "x"],
        &["RPUSH", FENCE, "x"],
        &["SET", FENCE, "x"],
    ];
    what_somebody_else_wrote_is_named_and_left_alone(&server, &locks, &foreign).await
}

#[test]
async fn a_hash_of_somebody_else_in_the_place_of_a_lock_that_others_wait_for_is_left_alone() -> Result<()> {
    let server = server().await;
    let store = store(&server).await?;
    let (first, waits) = (writer(), reader());
    granted(&store, &first).await?;
    queued(&store, &waits).await?;
    server.ask(&["DEL", LOCK]).await;
    server.ask(&["HSET", LOCK, "owner", "somebody"]).await;
    let before = server.ask(&["DUMP", LOCK]).await;
    assert_eq!(store.release(&first.grant(None)).await?, LeaseStatus::NotHeld);
    assert_eq!(store.try_acquire(&waits).await.unwrap_err().kind(), ErrorKind::Backend);
    assert_eq!(server.ask(&["DUMP", LOCK]).await, before);
    Ok(())
}

#[test]
async fn the_process_of_a_holder_is_told_of_a_release_by_force() -> Result<()> {
    let server = server().await;
    a_release_by_force_is_told(&store(&server).await?, &store(&server).await?).await
}

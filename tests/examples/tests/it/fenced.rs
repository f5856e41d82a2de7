//! `leasehold::fenced` on real resources: a late write is refused, also when many write at the same time.

use std::sync::Mutex;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncCommands, Client, RedisResult, Script};
use futures::future::join_all;
use leasehold::FencingToken;
use leasehold::fenced::{Outcome, REDIS_WRITE, SqlWrite, put_object};
use leasehold_testkit::{mysql, needs, redis, test};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// What is written to with tokens.
trait Resource {
    async fn write(&mut self, token: u64, balance: u64) -> Outcome;
    /// The balance, and the fence.
    async fn read(&mut self) -> (u64, u64);
}

async fn a_late_write_is_refused(resource: &mut impl Resource) {
    for (balance, token, who) in [(50, 5, "the holder"), (51, 5, "again"), (51, 5, "the same"), (90, 9, "the next")] {
        assert_eq!(resource.write(token, balance).await, Outcome::Written, "{who}");
    }
    assert_eq!(resource.write(5, 52).await, Outcome::Stale { seen: 9.into() }, "the late holder");
    assert_eq!(resource.read().await, (90, 9));
}

/// Eight writers have the numbers from 1 to `tokens` in turn, in an order in which many are late.
async fn it_never_goes_back_to_a_smaller_token<R: Resource>(writers: [R; 8], tokens: u64) {
    let ends = join_all((0..).zip(writers).map(|(writer, mut resource)| async move {
        let (mut stale, mut before) = (0, 0);
        for token in (0..tokens / 8).map(|turn| turn * 8 + (writer * 5 + turn * 3) % 8 + 1) {
            if let Outcome::Stale { seen } = resource.write(token, token * 10).await {
                assert!(seen.get() > token, "{seen} for {token}");
                stale += 1;
            }
            let (balance, fence) = resource.read().await;
            assert!(fence >= before && balance == fence * 10, "{fence} after {before}, and {balance}");
            before = fence;
        }
        (stale, before)
    }));
    let (stale, last): (Vec<u64>, Vec<u64>) = ends.await.into_iter().unzip();
    assert!(stale.iter().sum::<u64>() > 0, "no writer was late");
    assert_eq!(last.into_iter().max(), Some(tokens));
}

/// A row that goes back to a smaller fence is an error of the server itself.
const TABLE: [&str; 3] = [
    "CREATE TABLE leasehold.account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)",
    "INSERT INTO leasehold.account (id, balance) VALUES (7, 0)",
    "CREATE TRIGGER leasehold.forwards BEFORE UPDATE ON leasehold.account FOR EACH ROW IF NEW.fence < OLD.fence THEN \
     SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the fence went back'; END IF",
];

struct Row(Conn);

impl Row {
    async fn of(server: &mysql::Server) -> Self {
        Self(server.session().await.expect("a session"))
    }

    /// `None`: there is no such row.
    async fn write_to(&mut self, key: u64, token: u64, balance: u64) -> Option<Outcome> {
        let statement = SqlWrite::mysql("leasehold.account", "id", "fence", &["balance"]).expect("plain names");
        let written = self.0.exec_iter(statement.update(), (balance, token, key, token)).await.expect("it is written");
        let rows = written.affected_rows();
        drop(written);
        let seen = if rows == 0 { self.0.exec_first(statement.seen(), (key,)).await.expect("a fence") } else { None };
        SqlWrite::outcome(FencingToken::from(token), rows, seen)
    }
}

impl Resource for Row {
    async fn write(&mut self, token: u64, balance: u64) -> Outcome {
        self.write_to(7, token, balance).await.expect("the row is there")
    }

    async fn read(&mut self) -> (u64, u64) {
        let row = self.0.query_first("SELECT balance, fence FROM leasehold.account WHERE id = 7").await;
        row.expect("a row").expect("the row is there")
    }
}

#[test(multi_thread)]
async fn a_row_refuses_late_writes() {
    let server = mysql::Server::needed(&[]).await;
    server.sql(&TABLE).await;
    let (mut late, mut next) = (Row::of(&server).await, Row::of(&server).await);
    // A transaction shows itself the rows as they were when it began, unless it asks for them with a lock.
    late.0.query_drop("BEGIN").await.expect("a transaction");
    assert_eq!(late.read().await, (0, 0));
    a_late_write_is_refused(&mut next).await;
    assert_eq!(late.read().await, (0, 0), "this is what a plain SELECT is shown");
    assert_eq!(late.write(5, 50).await, Outcome::Stale { seen: 9.into() });
    late.0.query_drop("ROLLBACK").await.expect("the end");
    assert_eq!(late.write_to(8, 10, 80).await, None, "there is no such row");
    server.sql(&["UPDATE leasehold.account SET id = 6", TABLE[1]]).await;
    let writers = join_all([(); 8].map(|()| Row::of(&server))).await;
    it_never_goes_back_to_a_smaller_token(writers.try_into().unwrap_or_else(|_| panic!("eight")), 400).await;
}

const HASH: &str = "account:7";

struct Hash(MultiplexedConnection);

impl Hash {
    async fn of(server: &redis::Server) -> Self {
        let client = Client::open(server.url()).expect("a URL");
        Self(client.get_multiplexed_async_connection().await.expect("a connection"))
    }

    async fn script(&mut self, arguments: &[&str]) -> RedisResult<u64> {
        let script = Script::new(REDIS_WRITE);
        let mut write = script.key(HASH);
        for argument in arguments {
            write.arg(*argument);
        }
        write.invoke_async(&mut self.0).await
    }
}

impl Resource for Hash {
    async fn write(&mut self, token: u64, balance: u64) -> Outcome {
        let seen = self.script(&[&token.to_string(), "balance", &balance.to_string()]).await.expect("an answer");
        Outcome::of(FencingToken::from(token), seen)
    }

    async fn read(&mut self) -> (u64, u64) {
        self.0.hmget(HASH, &["balance", "fence"]).await.expect("the fields")
    }
}

#[test(multi_thread)]
async fn a_hash_refuses_late_writes() {
    let server = needs("redis-server", redis::Server::start(&[]).await);
    let hash = &mut Hash::of(&server).await;
    a_late_write_is_refused(hash).await;
    // Two tokens of 2^53 and above that differ would be one number of Lua. These are below, and differ by one.
    let (large, larger) = ((1 << 53) - 2, (1 << 53) - 1);
    assert_eq!(hash.write(larger, 91).await, Outcome::Written);
    assert_eq!(hash.write(large, 92).await, Outcome::Stale { seen: larger.into() });
    assert_eq!(hash.read().await, (91, larger));
    server.ask(&["DEL", HASH]).await;
    let writers = join_all([(); 8].map(|()| Hash::of(&server))).await;
    it_never_goes_back_to_a_smaller_token(writers.try_into().unwrap_or_else(|_| panic!("eight")), 2000).await;
}

#[test(multi_thread)]
async fn what_is_no_write_of_a_hash_changes_nothing() {
    let server = needs("redis-server", redis::Server::start(&[]).await);
    let hash = &mut Hash::of(&server).await;
    assert_eq!(hash.write(5, 50).await, Outcome::Written);
    let no_tokens = ["", "-6", "6.5", "1.83853e+15", "0x10", "9007199254740992"];
    let with_a_field = no_tokens.map(|bad| vec![bad, "balance", "1"]);
    for bad in with_a_field.into_iter().chain([vec![], vec!["6"], vec!["6", "balance"]]) {
        let refused = hash.script(&bad).await.expect_err("it is refused").to_string();
        assert!(refused.contains("a fenced write takes"), "{bad:?}: {refused}");
    }
    assert_eq!(hash.read().await, (50, 5));
    assert_eq!(hash.script(&["6", "fence", "1", "balance", "60"]).await.expect("an answer"), 6);
    assert_eq!(hash.read().await, (60, 6), "the fence is the token, whatever the caller writes there");
    let _: () = hash.0.hset(HASH, "fence", "none").await.expect("a field");
    let refused = hash.script(&["7", "balance", "70"]).await.expect_err("it is refused").to_string();
    assert!(refused.contains("is no token"), "{refused}");
}

/// A store of one object, as S3 and its like have it: a version that a write can name as its condition, fence and content.
#[derive(Default)]
struct Object(Mutex<Option<(u64, u64, u64)>>);

impl Resource for &Object {
    /// Others have their turn after each request.
    async fn write(&mut self, token: u64, balance: u64) -> Outcome {
        let read = async || {
            let object = *self.0.lock().unwrap();
            tokio::task::yield_now().await;
            Ok::<_, ()>(object.map(|(version, fence, _)| (version, fence)))
        };
        let put = async |unchanged: Option<u64>| {
            let is_same = {
                let mut object = self.0.lock().unwrap();
                let is_same = object.map(|(version, ..)| version) == unchanged;
                if is_same {
                    *object = Some((unchanged.unwrap_or(0) + 1, token, balance));
                }
                is_same
            };
            tokio::task::yield_now().await;
            Ok(is_same)
        };
        put_object(FencingToken::from(token), read, put).await.expect("this store does not fail")
    }

    async fn read(&mut self) -> (u64, u64) {
        let (_, fence, balance) = self.0.lock().unwrap().expect("an object");
        (balance, fence)
    }
}

#[test(multi_thread)]
async fn an_object_refuses_late_writes() {
    a_late_write_is_refused(&mut &Object::default()).await;
    let object = Object::default();
    it_never_goes_back_to_a_smaller_token([&object; 8], 4000).await;
    let read = async || Ok(Some((1, 9)));
    let failing = put_object(FencingToken::from(10), read, async |_: Option<u64>| Err("no answer"));
    assert_eq!(failing.await, Err("no answer"), "an outcome that is unknown is the caller's to know");
}

use leasehold_core::{Kind, Locks};
use leasehold_redis::{COUNTER, Form, Needs, examine};

use crate::locker::RedisReentrant;

/// `reentrant:` before the URL of a Redis, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("redis-reentrant", &["reentrant"], RedisReentrant::claims, |target| {
    Box::pin(async move {
        let sessions = RedisReentrant::connect(as_redis(target.url)).await?;
        Ok(Locks::exclusive(match target.session {
            Some(id) => sessions.session_with_id(id)?,
            None => sessions.session(),
        }))
    })
})
.package("leasehold-redis-reentrant")
.purpose("one Redis, Sentinel or Cluster, for owners that may take a key again")
.takes_password()
.takes_session()
.examine(|url| examine(as_redis(url), &NEEDS))
.cure(leasehold_redis::CURE);

/// The URL as the crate expects it.
fn as_redis(url: &str) -> &str {
    url.strip_prefix("reentrant:").unwrap_or(url)
}

/// What `doctor` looks for.
const NEEDS: Needs = Needs {
    commands: &["eval", "evalsha", "hmget", "hlen", "hset", "hdel", "get", "set", "del", "pexpire", "pttl", "time"],
    spare: &["publish", "subscribe", "unsubscribe", "ping", "scan", "info", "type"],
    parts: &[("lock", Form::Hash("epoch")), (COUNTER, Form::Counter("epoch")), ("forced", Form::Text)],
};

use std::borrow::Cow;

use leasehold_core::{Kind, Locks};
use leasehold_redis::{COUNTER, Form, Needs, examine};

use crate::locker::RedisRw;

/// `redis-rw:` in place of `redis:`, or before any URL of a Redis, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("redis-rw", &["redis-rw"], RedisRw::claims, |target| {
    Box::pin(async move { RedisRw::connect(&as_redis(target.url)).await.map(Locks::shared) })
})
.aliases(&["rediss-rw"])
.package("leasehold-redis-rw")
.purpose("one Redis, Sentinel or Cluster, with readers beside writers")
.takes_password()
.examine(|url| Box::pin(async move { examine(&as_redis(url), &NEEDS).await }))
.cure(leasehold_redis::CURE);

/// What `doctor` looks for.
const NEEDS: Needs = Needs {
    commands: &[
        "eval", "evalsha", "get", "exists", "set", "del", "pexpire", "pttl", "time", "hget", "hmget", "hgetall",
        "hset", "hdel",
    ],
    spare: &[
        "publish",
        "subscribe",
        "unsubscribe",
        "ping",
        "hlen",
        "pubsub|numsub",
        "scan",
        "info",
        "type",
        "zadd",
        "zrem",
        "zrevrange",
        "zrangebyscore",
    ],
    parts: &[
        ("lock", Form::Hash("writer")),
        (COUNTER, Form::Counter("epoch")),
        ("forced", Form::Text),
        ("queue", Form::Queue),
        ("readers", Form::SortedSet),
    ],
};

/// The URL as the crate expects it.
fn as_redis(url: &str) -> Cow<'_, str> {
    match url.split_once(':') {
        Some((scheme @ ("redis-rw" | "rediss-rw"), rest)) if rest.starts_with("//") => {
            Cow::Owned(format!("{}:{rest}", scheme.trim_end_matches("-rw")))
        }
        Some(("redis-rw", rest)) => Cow::Borrowed(rest),
        _ => Cow::Borrowed(url),
    }
}

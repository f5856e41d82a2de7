use leasehold_core::{Kind, Locks};
use leasehold_redis::{COUNTER, Form, Needs, examine};

use crate::locker::RedisSingle;

/// `redis:` and its relatives, for programs that find their store by the scheme of a URL.
pub const KIND: Kind =
    Kind::new("redis-single", &["redis", "rediss", "redis-sentinel", "redis-cluster"], RedisSingle::claims, |target| {
        Box::pin(async move { RedisSingle::connect(target.url).await.map(Locks::exclusive) })
    })
    .aliases(&[
        "rediss-sentinel",
        "rediss-cluster",
        "valkey",
        "valkeys",
        "valkey-sentinel",
        "valkeys-sentinel",
        "valkey-cluster",
        "valkeys-cluster",
    ])
    .package("leasehold-redis-single")
    .purpose("one Redis, Sentinel or Cluster")
    .takes_password()
    .examine(|url| examine(url, &NEEDS))
    .cure(leasehold_redis::CURE);

/// What `doctor` looks for.
const NEEDS: Needs = Needs {
    commands: &[
        "eval", "evalsha", "get", "mget", "mset", "exists", "set", "del", "pexpire", "pttl", "time", "hget", "hmget",
        "hset", "hdel",
    ],
    spare: &["publish", "subscribe", "unsubscribe", "ping", "hlen", "pubsub|numsub", "scan", "info", "type"],
    parts: &[("lock", Form::Entry), (COUNTER, Form::Counter("epoch")), ("forced", Form::Text), ("queue", Form::Queue)],
};

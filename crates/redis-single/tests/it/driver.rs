//! The driver suite, and a client of the caller's own.

use leasehold_core::Locks;
use leasehold_core::conformance::driver::Borrowed;
use leasehold_redis::fred::interfaces::ClientLike;
use leasehold_redis::fred::types::Builder;
use leasehold_redis::fred::types::config::Config;
use leasehold_redis_single::{KIND, RedisSingle};
use leasehold_testkit::redis::Servers;

pub(crate) fn servers() -> Servers {
    Servers::new(KIND, include_str!("../../README.md")).borrow(|url| {
        Box::pin(async move {
            let client = Builder::from_config(Config::from_url(&url)?).build()?;
            client.init().await?;
            let locks = Locks::exclusive(RedisSingle::from_client(client.clone()));
            let works = move || {
                let client = client.clone();
                Box::pin(async move { client.ping::<String>(None).await.is_ok() }) as _
            };
            Ok(Borrowed { locks, works: Box::new(works) })
        })
    })
}

use std::time::Duration;

use leasehold_core::{GrantRef, LeaseStatus, OwnerId, Renewal, Result};
use leasehold_redis::{NEXT_EPOCH, PROLONG, Script};

use crate::store::{HOLDERS_LUA, Store};

static RENEW: Script = Script::new(&[NEXT_EPOCH, PROLONG, HOLDERS_LUA, include_str!("lua/renew.lua")]);

static TAKE_OVER: Script = Script::new(&[NEXT_EPOCH, PROLONG, HOLDERS_LUA, include_str!("lua/take_over.lua")]);

/// Prolongs grants, each only if the server still has its owner under its epoch.
pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    store.redis.renew(&RENEW, renewals, within).await
}

/// Gives a grant to `new_owner` and prolongs it to `ttl`, if the server still has its owner under its epoch.
pub(crate) async fn take_over(
    store: &Store,
    grant: &GrantRef,
    new_owner: OwnerId,
    ttl: Duration,
) -> Result<LeaseStatus> {
    store.redis.take_over(&TAKE_OVER, grant, new_owner, ttl).await
}

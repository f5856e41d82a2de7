use leasehold_core::{Capability, Kind, Locker, Locks};

use crate::locker::AgentLocks;

/// `agent:`, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("agent", &["agent"], AgentLocks::claims, |target| {
    Box::pin(async move {
        let locks = AgentLocks::connect(target.url).await?;
        let has_readers = locks.capabilities().has(Capability::Shared);
        Ok(if has_readers { Locks::shared(locks) } else { Locks::exclusive(locks) })
    })
})
.package("leasehold-agent")
.purpose("many processes of one host on one connection, without the store's password in any of them")
.cure("let a line of the agent's policy allow the key to the user of this process");

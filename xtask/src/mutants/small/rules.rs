//! Changes of the engine that no tool makes: each leaves out a rule of the protocol.

/// A text that stands once in a file, and what stands there without the rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) file: &'static str,
    pub(super) wrong: &'static str,
    pub(super) right: &'static str,
    pub(super) instead: &'static str,
}

macro_rules! rules {
    ($($wrong:literal in $file:literal, $right:literal => $instead:literal;)*) => {
        &[$(Rule { file: concat!($file, ".rs"), wrong: $wrong, right: $right, instead: $instead }),*]
    };
}

pub(super) const STATE: &[Rule] = rules! {
    "a grant that no waiter wants stays" in "grant",
        "return self.release(step, claim.member, grant, ttl, claim.unanswered, None);\n        };" => "return;\n        };";
    "of two leases of which one excludes the other, both stay" in "grant",
        "let exclusive = lease.is_exclusive() || mode == Mode::Exclusive;" => "let exclusive = false;";
    "a waiter that leaves keeps what it has in the store" in "claim",
        "if claim.is_repeated() {\n            let grant" => "if false {\n            let grant";
    "a claim has the owner id of a lease before it" in "claim",
        "claim.sent_at = step.now;" =>
        "claim.owner = self.store.releases.last().map_or(claim.owner, |release| release.grant.owner); claim.sent_at = step.now;";
    "a claim that is sent again counts as new" in "claim",
        "if !claim.is_repeated() {\n            claim.join_limit" => "if true {\n            claim.join_limit";
    "an offer to a caller that is gone stays" in "key",
        "self.release_guard(step, &offer.guard, None);" => "drop(offer);";
    "a claim overtakes this process's own release" in "key",
        "release.is_in_the_way(waiter.mode) && (of_session || !release.has_failed)" => "false";
    "a session's next lease begins under a guard that is lost" in "key",
        "if lease.terms.member == member && lease.is_reentrant() =>" => "if false =>";
    "the next guard gets the whole lease" in "local_handoff",
        "let number = before.number + 1;" =>
        "let ttl = self.leases[index].terms.ttl; self.leases[index].prolong(step.now, ttl); step.out.push(Action::Limit(self.leases[index].cell.clone(), self.leases[index].limit())); let number = before.number + 1;";
    "a hand-off does not count" in "local_handoff", "before.number + 1" => "before.number";
    "a shared lease is handed off" in "local_handoff", "&& lease.is_exclusive()" => "";
    "hand-offs have no bound" in "local_handoff",
        "let used_up = lease.guards[entry].number >= traits.handoffs;" => "let used_up = false;";
    "after the bound, other processes do not go first" in "local_handoff",
        "if !traits.queues && !self.queue.waiters.is_empty() {" => "if false {";
    "a reader shares a grant that was asked for before it came" in "local_handoff",
        "&& waiter.id.0 < claim.join_limit" => "";
    "a reader gets a grant that was asked for before it came" in "pending",
        "let before = waiter.id.0 < self.join_limit;" => "let before = true;";
    "a lease counts from the last request that may have begun it" in "pending",
        "(!self.unanswered).then(" => "true.then(";
    "an attached lease keeps its owner" in "take_over",
        "let owner = step.random.owner(step.now);" => "let owner = grant.owner;";
    "a writer that was not downgraded stays" in "take_over",
        "self.release(step, pending.member, pending.old.clone(), ttl, may_be_late, None);" => "let _ = (ttl, may_be_late);";
    "a notification during a claim is judged without its answer" in "notifications",
        "if let Phase::Sent { message, .. } = &mut claim.phase {" => "if false && let Phase::Sent { message, .. } = &mut claim.phase {";
    "a guard that is over ends another" in "release",
        "let Some(entry) = found(lease) else" => "let Some(entry) = found(lease).or((!lease.guards.is_empty()).then_some(0)) else";
    "guards do not hear of the end of their lease" in "release",
        "step.out.push(Action::End { cell, key: self.name.clone(), end, held_for });" => "let _ = (cell, held_for);";
    "a release by force ends what it did not evict" in "release",
        "for lease in leases {\n            self.end(step, *lease, End::Lost(LossReason::ForceReleased));" =>
        "let all: Vec<_> = self.leases.iter().map(|lease| lease.id).collect(); for lease in &all {\n            self.end(step, *lease, End::Lost(LossReason::ForceReleased));";
    "a closed engine makes guards" in "release",
        "|waiter: &Waiter<W>| waiter.member == member;" => "|waiter: &Waiter<W>| false;";
    "a lease that ran out is not lost first" in "release",
        "while let Some(lease) = self.leases.iter().find(over) {" => "while let Some(lease) = self.leases.iter().find(over).filter(|_| false) {";
    "a lease that is almost over is handed off" in "lease", "&& spare < self.limit()" => "";
    "a lease is handed off while a renewal has no answer" in "lease", "self.limit() && !self.unanswered" => "self.limit()";
    "a late answer shortens a lease" in "lease",
        "self.deadline = self.deadline.max(lease_deadline(sent_at, ttl));" => "self.deadline = lease_deadline(sent_at, ttl);";
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{read, root};

    #[test]
    fn every_rule_stands_once_in_its_file() {
        for rule in STATE {
            let text = read(&root().join("crates/core/src/engine/state").join(rule.file)).unwrap();
            assert_eq!(text.matches(rule.right).count(), 1, "{}: {}", rule.file, rule.right);
        }
    }
}

use std::collections::HashMap;

use leasehold_core::OwnerId;

/// Owners whose lease may still be replaced by a transaction that was sent, and whose answer did not come: each with the newest
/// revision of its entry that such a transaction compares.
#[derive(Debug, Default)]
pub(crate) struct Unanswered(HashMap<OwnerId, i64>);

impl Unanswered {
    /// Notes a transaction, before it is sent, that replaces the lease if the entry is as it was at this revision.
    pub(crate) fn sent(&mut self, owner: OwnerId, revision: i64) {
        let newest = self.0.entry(owner).or_insert(revision);
        *newest = revision.max(*newest);
    }

    /// Notes the answer to such a transaction: the entry is a newer one by now, and none that compares this revision or an
    /// older one changes it any more. One that compares a newer revision may be under way, where two renewals of a lease overlap.
    pub(crate) fn answered(&mut self, owner: OwnerId, revision: i64) {
        if self.0.get(&owner).is_some_and(|newest| *newest <= revision) {
            self.0.remove(&owner);
        }
    }

    /// Notes that the owner has no entry any more.
    pub(crate) fn gone(&mut self, owner: OwnerId) {
        self.0.remove(&owner);
    }

    pub(crate) fn contains(&self, owner: OwnerId) -> bool {
        self.0.contains_key(&owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_settles_what_compares_its_revision_and_nothing_newer() {
        let (owner, mut unanswered) = (OwnerId::random(), Unanswered::default());
        unanswered.sent(owner, 10);
        // A renewal that read the entry which the first one wrote.
        unanswered.sent(owner, 11);
        unanswered.answered(owner, 10);
        assert!(unanswered.contains(owner));
        // One that read the older entry, and was sent late.
        unanswered.sent(owner, 10);
        unanswered.answered(owner, 10);
        assert!(unanswered.contains(owner));
        unanswered.answered(owner, 11);
        assert!(!unanswered.contains(owner));
        unanswered.sent(owner, 12);
        unanswered.gone(owner);
        assert!(!unanswered.contains(owner));
    }
}

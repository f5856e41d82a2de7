use std::fmt;

use leasehold_core::{FencingToken, Holder, Mode};

use crate::keyspace::metadata::Metadata;
use crate::keyspace::number::read_epoch;

/// What is kept under the name of a lock that is a string: `owner number metadata`. The owner always has 32 hex digits,
/// the number is `-` as long as there is none, the metadata is JSON.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The owner id, 32 hex digits. It is a capability: who knows it can release the lock.
    pub owner: String,
    /// The epoch, of which tokens are made; `None` as long as there is none.
    pub epoch: Option<u64>,
    /// When it was taken, in ms by the server's clock.
    pub since: Option<u64>,
    metadata: Metadata,
}

impl Entry {
    /// Reads an entry. A text that Leasehold did not write is an entry without owner, epoch and metadata: it is in the way
    /// like any other.
    pub fn read(text: &str) -> Self {
        let foreign = || Self { owner: String::new(), epoch: None, since: None, metadata: Metadata::default() };
        Self::parse(text).unwrap_or_else(foreign)
    }

    fn parse(text: &str) -> Option<Self> {
        let (owner, rest) = text.split_at_checked(32)?;
        let (epoch, metadata) = rest.strip_prefix(' ')?.split_once(' ')?;
        let epoch = if epoch == "-" { None } else { Some(read_epoch(epoch)?) };
        let since = metadata.strip_prefix("{\"since\":").and_then(|rest| rest.split([',', '}']).next()?.parse().ok());
        let is_owner = owner.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_owner.then(|| Self { owner: owner.to_owned(), epoch, since, metadata: Metadata::read(metadata) })
    }

    /// Whether Leasehold wrote the entry.
    pub fn is_ours(&self) -> bool {
        !self.owner.is_empty()
    }

    /// What `inspect` shows of the holder, without the remaining lease.
    pub fn to_holder(&self) -> Holder {
        let mode = Mode::Exclusive;
        // No token has the bits of a larger one.
        let epoch = self.epoch.filter(|epoch| *epoch <= FencingToken::MAX_EPOCH);
        let mut holder = epoch.map_or_else(|| Holder::new(mode), |epoch| Holder::of_epoch(mode, epoch));
        self.metadata.clone().describe(&mut holder);
        holder
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("epoch", &self.epoch).field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use leasehold_testkit::corpus_of_text;

    const OWNER: &str = "0123456789abcdef0123456789abcdef";

    proptest! {
        #[test]
        fn what_the_scripts_write_is_read_back(epoch in proptest::option::of(0..1u64 << 53), label in any::<String>()) {
            let written = serde_json::json!({ "label": label }).to_string();
            let metadata = Metadata::read(&written);
            let number = epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
            let entry = Entry::parse(&format!("{OWNER} {number} {{\"since\":1,{}", &written[1..]));
            prop_assert_eq!(entry, Some(Entry { owner: OWNER.into(), epoch, since: Some(1), metadata }));
        }
    }

    #[test]
    fn whatever_stands_in_an_entry_it_is_read_without_its_owner_being_shown() {
        corpus_of_text(include_str!("../../corpus/entries.txt"), |text| {
            let entry = Entry::read(text);
            let holder = entry.to_holder();
            assert!(!format!("{holder:?}").contains(OWNER) || text.matches(OWNER).count() > 1, "{text}");
            assert!(holder.token.is_none_or(|token| token.epoch() <= FencingToken::MAX_EPOCH), "{text}");
            let _ = Metadata::read(text);
        });
    }

    #[test]
    fn foreign_text_is_not_an_entry_and_no_owner_is_shown() {
        let entry = Entry::read(&format!("{OWNER} 7 not json"));
        assert_eq!(entry.to_holder().token, Some(FencingToken::of_epoch(7)));
        assert!(format!("{entry:?}").contains("epoch: Some(7)") && !format!("{entry:?}").contains(OWNER));
        assert!(Entry::read(&format!("{OWNER} - {{}}")).is_ours());
        for foreign in
            ["", "hello", OWNER, "0123456789abcdef0123456789abcdeg 7 {}", &format!("{OWNER} x {{}}"), &"é".repeat(40)]
        {
            assert!(!Entry::read(foreign).is_ours(), "{foreign}");
            assert_eq!(Entry::read(foreign).to_holder().token, None, "{foreign}");
        }
    }
}

use std::fmt;

use leasehold_core::{FencingToken, Holder, Mode};
use serde::{Deserialize, Serialize};

/// What a node keeps under the name of a lock: `owner tenure metadata`. The owner always has 32 hex digits, the tenure
/// is `-` before the second round, the metadata is JSON.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) owner: String,
    pub(crate) tenure: Option<u64>,
    metadata: Metadata,
}

/// Read leniently: whoever shares the server may write more than we know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Metadata {
    pub(crate) fn new(label: Option<&str>, reason: Option<&str>) -> Self {
        Self { label: label.map(str::to_owned), reason: reason.map(str::to_owned) }
    }

    /// Without the opening brace, to follow a first member that the script writes: the time by the server's clock.
    pub(crate) fn tail(&self) -> String {
        match serde_json::to_string(self).as_deref().map(|object| object.trim_start_matches('{')) {
            Ok("}") | Err(_) => "}".to_owned(),
            Ok(members) => format!(",{members}"),
        }
    }
}

impl Entry {
    /// `None`: somebody else wrote it.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (owner, rest) = text.split_at_checked(32)?;
        let (tenure, metadata) = rest.strip_prefix(' ')?.split_once(' ')?;
        let tenure = if tenure == "-" { None } else { Some(tenure.parse().ok()?) };
        let is_owner = owner.bytes().all(|byte| byte.is_ascii_hexdigit());
        let metadata = serde_json::from_str(metadata).unwrap_or_default();
        Some(Self { owner: owner.to_owned(), tenure, metadata }).filter(|_| is_owner)
    }

    /// A holder without token and remaining lease.
    pub(crate) fn to_holder(&self) -> Holder {
        let mut holder = Holder::new(Mode::Exclusive);
        holder.token = self.tenure.map(FencingToken::of_tenure);
        holder.label.clone_from(&self.metadata.label);
        holder.reason.clone_from(&self.metadata.reason);
        holder
    }
}

impl fmt::Debug for Entry {
    /// Whoever knows the owner can release the lock.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("tenure", &self.tenure).field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNER: &str = "0123456789abcdef0123456789abcdef";

    proptest! {
        #[test]
        fn what_the_scripts_write_is_read_back(
            label in any::<Option<String>>(),
            reason in any::<Option<String>>(),
            tenure in proptest::option::of(0..1u64 << 43),
        ) {
            let metadata = Metadata::new(label.as_deref(), reason.as_deref());
            let number = tenure.map_or_else(|| "-".to_owned(), |tenure| tenure.to_string());
            let entry = Entry::read(&format!("{OWNER} {number} {{\"since\":1{}", metadata.tail()));
            prop_assert_eq!(entry, Some(Entry { owner: OWNER.into(), tenure, metadata }));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = Entry::read(&text);
            let _ = Entry::read(&format!("{OWNER} {text}"));
        }
    }

    #[test]
    fn unknown_metadata_is_passed_over_and_foreign_text_is_not_an_entry() {
        let entry = Entry::read(&format!("{OWNER} 7 {{\"since\":1,\"host\":\"a\",\"label\":\"b\"}}")).unwrap();
        assert_eq!(entry.metadata.label.as_deref(), Some("b"));
        assert!(!format!("{entry:?}").contains(OWNER));
        assert!(Entry::read(&format!("{OWNER} - not json")).is_some());
        for foreign in
            ["", "hello", OWNER, "0123456789abcdef0123456789abcdeg 7 {}", &format!("{OWNER} x {{}}"), &"é".repeat(40)]
        {
            assert_eq!(Entry::read(foreign), None, "{foreign}");
        }
    }
}

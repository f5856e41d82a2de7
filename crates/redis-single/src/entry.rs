use std::time::Duration;

use leasehold_core::{FencingToken, Holder, Mode};
use serde::{Deserialize, Serialize};

/// What is kept under the name of a lock: `owner tenure metadata`, the owner always 32 hex digits, the metadata JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    tenure: u64,
    metadata: Metadata,
}

/// Read leniently: whoever shares the server may write more than we know.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
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
        if *self == Self::default() {
            return "}".to_owned();
        }
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
        let is_owner = owner.bytes().all(|byte| byte.is_ascii_hexdigit());
        let metadata = serde_json::from_str(metadata).unwrap_or_default();
        Some(Self { tenure: tenure.parse().ok()?, metadata }).filter(|_| is_owner)
    }

    pub(crate) fn into_holder(self, remaining: Option<Duration>) -> Holder {
        let mut holder = Holder::new(Mode::Exclusive);
        holder.token = Some(FencingToken::of_tenure(self.tenure));
        holder.remaining = remaining;
        holder.label = self.metadata.label;
        holder.reason = self.metadata.reason;
        holder
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNER: &str = "0123456789abcdef0123456789abcdef";

    proptest! {
        #[test]
        fn what_the_script_writes_is_read_back(label in any::<Option<String>>(), reason in any::<Option<String>>(), tenure in 0..1u64 << 53) {
            let tail = Metadata::new(label.as_deref(), reason.as_deref()).tail();
            let entry = Entry::read(&format!("{OWNER} {tenure} {{\"since\":1{tail}"));
            prop_assert_eq!(entry, Some(Entry { tenure, metadata: Metadata { label, reason } }));
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
        assert!(Entry::read(&format!("{OWNER} 7 not json")).is_some());
        for foreign in
            ["", "hello", OWNER, "0123456789abcdef0123456789abcdeg 7 {}", &format!("{OWNER} x {{}}"), &"é".repeat(40)]
        {
            assert_eq!(Entry::read(foreign), None, "{foreign}");
        }
    }
}

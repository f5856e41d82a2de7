use std::time::Duration;

use leasehold_core::{FencingToken, Holder, Mode};
use serde::{Deserialize, Serialize};

/// What is said of a holder beside its owner and number, as JSON. Also has `since`, by the server's clock.
///
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

    /// Without the opening brace, to follow a first member that the script writes: `since`.
    pub(crate) fn tail(&self) -> String {
        match serde_json::to_string(self).as_deref().map(|object| object.trim_start_matches('{')) {
            Ok("}") | Err(_) => "}".to_owned(),
            Ok(members) => format!(",{members}"),
        }
    }
}

/// What the fields of a lock's hash, as text, say of its holder.
pub(crate) fn holder(tenure: &str, metadata: &str, left: &str) -> Holder {
    let Metadata { label, reason } = serde_json::from_str(metadata).unwrap_or_default();
    let mut holder = Holder::new(Mode::Exclusive);
    // Larger ones are not ours, and have no token.
    holder.token = tenure.parse().ok().filter(|tenure| *tenure < 1 << 53).map(FencingToken::of_tenure);
    holder.remaining = left.parse().ok().map(Duration::from_millis);
    holder.label = label;
    holder.reason = reason;
    holder
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_the_script_writes_is_read_back(label in any::<Option<String>>(), reason in any::<Option<String>>()) {
            let tail = Metadata::new(label.as_deref(), reason.as_deref()).tail();
            let read = holder("7", &format!("{{\"since\":1{tail}"), "5");
            prop_assert_eq!((read.label, read.reason), (label, reason));
        }

        #[test]
        fn no_text_makes_it_panic(tenure in ".*", metadata in ".*", left in ".*", number in any::<u64>()) {
            let _ = holder(&tenure, &metadata, &left);
            let _ = holder(&number.to_string(), &format!("{{{metadata}"), &number.to_string());
        }
    }

    #[test]
    fn a_lease_that_never_ends_has_no_remaining_time() {
        let read = holder("7", r#"{"since":1,"host":"a","label":"b"}"#, "-1");
        assert_eq!((read.remaining, read.label.as_deref()), (None, Some("b")));
        assert_eq!(read.token, Some(FencingToken::of_tenure(7)));
    }
}

use leasehold_core::{Claim, Holder};

use super::json::{push_quoted, string_members};

/// What is kept of a holder beside its owner and number, as JSON. Also has `since`, by the server's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    label: Option<String>,
    reason: Option<String>,
}

impl Metadata {
    /// Reads the JSON; empty if it is none. Members that are not known here are skipped: a newer version may write more.
    pub(crate) fn read(json: &str) -> Self {
        let mut metadata = Self::default();
        for (name, value) in string_members(json).unwrap_or_default() {
            match name.as_str() {
                "label" => metadata.label = Some(value),
                "reason" => metadata.reason = Some(value),
                _ => {}
            }
        }
        metadata
    }

    /// Copies the label and the reason into a holder.
    pub(crate) fn describe(self, holder: &mut Holder) {
        holder.label = self.label;
        holder.reason = self.reason;
    }
}

/// The label and the reason of a claim, as scripts keep them: a JSON object without its opening brace, to follow a first
/// member that the script writes, `since`.
pub fn encode_metadata(claim: &Claim) -> String {
    tail(claim.label.as_deref(), claim.reason.as_deref())
}

fn tail(label: Option<&str>, reason: Option<&str>) -> String {
    let mut json = String::with_capacity(64);
    for (name, text) in [(",\"label\":", label), (",\"reason\":", reason)] {
        if let Some(text) = text {
            json.push_str(name);
            push_quoted(&mut json, text);
        }
    }
    json.push('}');
    json
}

/// Adds to a holder the label and the reason that scripts kept as JSON. A text that is no such JSON adds nothing.
pub fn decode_metadata(json: &str, holder: &mut Holder) {
    Metadata::read(json).describe(holder);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::{LockKey, Mode};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_a_script_writes_is_read_back(label in any::<Option<String>>(), reason in any::<Option<String>>()) {
            let tail = tail(label.as_deref(), reason.as_deref());
            prop_assert_eq!(Metadata::read(&format!("{{\"since\":1{tail}")), Metadata { label, reason });
        }
    }

    #[test]
    fn unknown_members_are_passed_over() {
        let metadata = Metadata::read(r#"{"since":1,"host":"a","label":"b"}"#);
        assert_eq!(metadata, Metadata { label: Some("b".into()), reason: None });
    }
    #[test]
    fn what_a_claim_says_is_shown_of_its_holder() {
        let key = LockKey::new("k").unwrap();
        let mut claim = Claim::new(&key, Mode::Exclusive, Duration::from_secs(1));
        assert_eq!(encode_metadata(&claim), "}");
        (claim.label, claim.reason) = (Some("ada".into()), Some("\"why\"".into()));
        let mut holder = Holder::new(Mode::Exclusive);
        decode_metadata(&format!("{{\"since\":1{}", encode_metadata(&claim)), &mut holder);
        assert_eq!((holder.label.as_deref(), holder.reason.as_deref()), (Some("ada"), Some("\"why\"")));
    }
}

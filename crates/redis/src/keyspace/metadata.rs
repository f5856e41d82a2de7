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
    let mut json = String::with_capacity(64);
    for (name, text) in [(",\"label\":", &claim.label), (",\"reason\":", &claim.reason)] {
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
        fn what_a_claim_says_is_shown_of_its_holder(label in any::<Option<String>>(), reason in any::<Option<String>>()) {
            let mut claim = Claim::new(&LockKey::new("k").unwrap(), Mode::Exclusive, Duration::from_secs(1));
            prop_assert_eq!(encode_metadata(&claim), "}");
            (claim.label, claim.reason) = (label.as_deref().map(Into::into), reason.as_deref().map(Into::into));
            let mut holder = Holder::new(Mode::Exclusive);
            decode_metadata(&format!("{{\"since\":1{}", encode_metadata(&claim)), &mut holder);
            prop_assert_eq!((holder.label, holder.reason), (label, reason));
        }
    }

    #[test]
    fn unknown_members_are_passed_over() {
        let metadata = Metadata::read(r#"{"since":1,"host":"a","label":"b"}"#);
        assert_eq!(metadata, Metadata { label: Some("b".into()), reason: None });
    }
}

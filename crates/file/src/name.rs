//! Encodes any text as the name of a file, and decodes it. Distinct texts have distinct names, also on file systems that
//! ignore the case of letters.

use leasehold_core::LockKey;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};

/// The length of the longest name that is not a digest. With every ending it fits the 143 bytes that eCryptfs allows.
const LONGEST: usize = 120;

/// The encoded characters: all but `a-z`, `0-9`, `-` and `_`. Capitals are encoded so that names differ in more than case,
/// and the dot so that no name is hidden, is `..`, or has an ending.
const ENCODED: &AsciiSet = &{
    let mut set = NON_ALPHANUMERIC.remove(b'-').remove(b'_');
    let mut capital = b'A';
    while capital <= b'Z' {
        set = set.add(capital);
        capital += 1;
    }
    set
};

/// Encodes the whole text in characters that are safe in a name. The result can be longer than a name may be.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The key whose encoding by [`encode`] this is. `None` if it is the encoding of no key.
pub(crate) fn decode(encoded: &str) -> Option<LockKey> {
    let text = percent_decode_str(encoded).decode_utf8().ok()?;
    let key = LockKey::new(&*text).ok()?;
    (encode(key.as_str()) == encoded).then_some(key)
}

/// The file name for an encoded text: the text itself or, if that is too long for a file system, `~` and its digest.
pub(crate) fn stem(encoded: &str) -> String {
    if encoded.len() <= LONGEST { encoded.to_owned() } else { format!("~{:x}", Sha256::digest(encoded)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use leasehold_testkit::corpus_of_text;

    #[test]
    fn whatever_the_name_of_a_file_is_it_is_that_of_one_key_or_of_none() {
        corpus_of_text(include_str!("../corpus/names.txt"), |name| {
            if let Some(key) = decode(name) {
                assert_eq!(encode(key.as_str()), name);
            }
        });
    }

    proptest! {
        #[test]
        fn every_key_survives_its_encoding_and_has_a_name_of_one_plain_component(key in any::<String>()) {
            prop_assume!((1..=LockKey::MAX_BYTES).contains(&key.len()));
            let encoded = encode(&key);
            let name = stem(&encoded);
            prop_assert!(name.len() <= LONGEST);
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_%~".contains(&byte)));
            prop_assert!(encoded.len() <= 3 * LockKey::MAX_BYTES);
            prop_assert_eq!(decode(&encoded), Some(LockKey::new(key).unwrap()));
        }

        #[test]
        fn distinct_keys_have_distinct_names_also_where_case_is_folded(
            a in "[aAbB%.~/ \0é]{1,4}|[xX]{119,122}", b in "[aAbB%.~/ \0é]{1,4}|[xX]{119,122}"
        ) {
            prop_assume!(a != b);
            let name = |key: &str| stem(&encode(key)).to_lowercase();
            prop_assert_ne!(name(&a), name(&b));
        }
    }

    #[test]
    fn names_are_as_documented() {
        let names = [
            ("nightly-report", "nightly-report"),
            ("Invoice/42", "%49nvoice%2F42"),
            ("..", "%2E%2E"),
            ("a\0b", "a%00b"),
            ("~a", "%7Ea"),
            ("é", "%C3%A9"),
        ];
        for (key, name) in names {
            assert_eq!(stem(&encode(key)), name, "{key:?}");
        }
        let digest = stem(&encode(&"é".repeat(100)));
        assert!(digest.starts_with('~') && digest.len() == 65, "{digest}");
    }
}

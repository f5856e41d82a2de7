use std::fmt;
use std::sync::LazyLock;

use fred::util::redis_keyslot;
use leasehold_core::{Error, ErrorKind, LockKey, Result};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// Keeps the keys of programs that share a Redis apart, and names everything that is kept for them: 1 to 64 bytes of
/// UTF-8, `leasehold` by default.
///
/// Every name is `{namespace:key}:part`. The braces put all parts of a key into one hash slot of a Cluster. What is not
/// printable ASCII, and space, `{`, `}` and `%`, is percent-encoded (in the namespace `:` too), so that different keys,
/// and the same key in different namespaces, never share a name.
///
/// ```
/// use leasehold_core::LockKey;
/// use leasehold_redis::Namespace;
///
/// let namespace = Namespace::default();
/// assert_eq!(namespace.of(&LockKey::new("invoice/42")?).part("lock"), "{leasehold:invoice/42}:lock");
/// assert_eq!(namespace.of(&LockKey::new("}a b")?).part("lock"), "{leasehold:%7Da%20b}:lock");
/// # Ok::<(), leasehold_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Namespace {
    text: String,
    /// `{namespace:`, encoded.
    head: String,
    /// The slot of the head and four zeros.
    zeros: u16,
}

/// The names that belong to one key of a [`Namespace`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyNames {
    /// `{namespace:key}`, encoded.
    tag: String,
    /// As of the namespace.
    zeros: u16,
}

/// The part of a key's names that has the holders.
pub const LOCK: &str = "lock";

/// The part of a key's names under which the script of a forced release leaves the owner ids of the holders.
pub const FORCED: &str = "forced";

/// The last part of the name of a counter.
pub const COUNTER: &str = "epoch";

const SLOTS: usize = 16_384;

/// Four letters for each remainder that a checksum can leave. The checksum of a hash slot is linear: with a head in front of them,
/// they are in the slot of that head and four zeros, XOR the slot that they have alone.
static WORDS: LazyLock<Vec<[u8; 4]>> = LazyLock::new(|| {
    let mut words = vec![[0; 4]; SLOTS];
    let mut missing = SLOTS;
    // The last of 16,384 comes at about 70,000.
    for number in 0..26_u32.pow(4) {
        let word = [17_576, 676, 26, 1].map(|place| b'a' + (number / place % 26) as u8);
        let found = &mut words[usize::from(redis_keyslot(&word))];
        if *found == [0; 4] {
            *found = word;
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    words
});

/// The longest namespace, in bytes.
const MAX_BYTES: usize = 64;

const IN_KEY: AsciiSet = CONTROLS.add(b' ').add(b'{').add(b'}').add(b'%');
const IN_NAMESPACE: AsciiSet = IN_KEY.add(b':');

impl Namespace {
    /// A namespace of this name.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) when it is empty or longer than 64 bytes.
    pub fn new(namespace: impl Into<String>) -> Result<Self> {
        let text = namespace.into();
        if (1..=MAX_BYTES).contains(&text.len()) {
            return Ok(Self::of_text(text));
        }
        let detail = format!("the namespace has {} bytes; it takes 1 to {MAX_BYTES}", text.len());
        Err(Error::new(ErrorKind::InvalidOptions, "check a namespace").detail(detail))
    }

    fn of_text(text: String) -> Self {
        let head = format!("{{{}:", utf8_percent_encode(&text, &IN_NAMESPACE));
        let zeros = redis_keyslot(&[&head.as_bytes()[1..], &[0; 4]].concat());
        Self { text, head, zeros }
    }

    /// The names of one key.
    pub fn of(&self, key: &LockKey) -> KeyNames {
        let mut tag = String::with_capacity(self.head.len() + key.as_str().len() + 1);
        tag.push_str(&self.head);
        tag.extend(utf8_percent_encode(key.as_str(), &IN_KEY));
        tag.push('}');
        KeyNames { tag, zeros: self.zeros }
    }

    /// The name of something that belongs to the namespace and to no key: `{namespace:}:part`.
    pub fn own(&self, part: &str) -> String {
        format!("{}}}:{part}", self.head)
    }

    /// A pattern for `SCAN MATCH` that finds `part` of every key that starts with `prefix`, and nothing else.
    pub(crate) fn pattern(&self, prefix: &str, part: &str) -> String {
        let start = format!("{}{}", self.head, utf8_percent_encode(prefix, &IN_KEY));
        let mut pattern = String::with_capacity(start.len() + part.len() + 8);
        for c in start.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern + "*}:" + part
    }

    /// The key whose `part` has this name. `None`: Leasehold writes no such name.
    pub(crate) fn key(&self, name: &str, part: &str) -> Option<LockKey> {
        let encoded = name.strip_prefix(&self.head)?.strip_suffix(part)?.strip_suffix("}:")?;
        // Other users of the server may write any name: one of megabytes is not even decoded.
        if encoded.len() > 3 * LockKey::MAX_BYTES {
            return None;
        }
        let key = LockKey::new(percent_decode_str(encoded).decode_utf8().ok()?).ok()?;
        (self.of(&key).part(part) == name).then_some(key)
    }
}

impl KeyNames {
    /// The name of one part, such as `lock`.
    pub fn part(&self, part: &str) -> String {
        let mut name = String::with_capacity(self.tag.len() + 1 + part.len());
        self.write_part(part, &mut name);
        name
    }

    pub(crate) fn write_part(&self, part: &str, to: &mut String) {
        to.push_str(&self.tag);
        to.push(':');
        to.push_str(part);
    }

    /// The name of the counter from which the key draws its epochs: `{namespace:WORD}:epoch`, one for all keys of a hash slot,
    /// so that a key that nobody holds takes no memory. WORD is the first of four letters that put it into that slot.
    pub fn counter(&self) -> String {
        let mut name = String::with_capacity(self.tag.len());
        self.write_counter(&mut name);
        name
    }

    pub(crate) fn write_counter(&self, to: &mut String) {
        // The first of a name, because the namespace has its own encoded.
        let head = &self.tag[..self.tag.find(':').map_or(0, |colon| colon + 1)];
        let word = WORDS[usize::from(redis_keyslot(self.tag.as_bytes()) ^ self.zeros)];
        to.push_str(head);
        to.extend(word.map(char::from));
        to.push_str("}:");
        to.push_str(COUNTER);
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self::of_text("leasehold".to_owned())
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use leasehold_testkit::corpus_of_text;

    /// Short strings over few characters, so that collisions would be found.
    const TRICKY: &str = r"[{}%:25a\x00é]{1,5}";

    fn names(namespace: &str) -> Namespace {
        Namespace::new(namespace).unwrap()
    }

    #[test]
    fn whatever_the_name_is_it_is_that_of_one_key_or_of_none() {
        let names = names("leasehold");
        corpus_of_text(include_str!("../../corpus/names.txt"), |name| {
            if let Some(key) = names.key(name, "lock") {
                assert_eq!(names.of(&key).part("lock"), name);
            }
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn different_keys_and_namespaces_have_different_names(a in (TRICKY, TRICKY), b in (TRICKY, TRICKY)) {
            let name = |(namespace, key): &(String, String)| names(namespace).of(&LockKey::new(key.as_str()).unwrap());
            prop_assert_eq!(a == b, name(&a) == name(&b));
        }

        #[test]
        fn a_key_is_read_back_from_its_name(namespace in TRICKY, key in ".{1,60}") {
            prop_assume!(key.len() <= LockKey::MAX_BYTES);
            let names = names(&namespace);
            let key = LockKey::new(key).unwrap();
            let name = names.of(&key).part("lock");
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{}", name);
            prop_assert_eq!(names.key(&name, "lock"), Some(key));
            prop_assert_eq!(names.key(&name, "fence"), None);
        }
    }

    #[test]
    fn patterns_escape_what_means_something_to_glob() {
        let names = names("a*b");
        assert_eq!(names.pattern("k[?]\\", "lock"), r"{a\*b:k\[\?\]\\*}:lock");
        assert_eq!(names.pattern("", "lock"), r"{a\*b:*}:lock");
    }

    #[test]
    fn namespaces_are_1_to_64_bytes() {
        assert!(Namespace::new("x".repeat(64)).is_ok());
        for bad in [String::new(), "x".repeat(65)] {
            assert_eq!(Namespace::new(bad).unwrap_err().kind(), ErrorKind::InvalidOptions);
        }
        assert_eq!(Namespace::default().to_string(), "leasehold");
    }
}

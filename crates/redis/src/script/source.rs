use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use fred::bytes_utils::Str;
use fred::util::sha1_hash;

/// A Lua script that runs in the server as one atomic step.
///
/// House rules: scripts answer with words, in a list or divided by spaces, they raise nothing after the first write; numbers travel as text; the first
/// element of an answer is a word of the script's own (the driver takes a list that starts with `message` for a
/// signal); all keys are passed, none is built inside.
pub struct Script {
    pub(super) source: Cow<'static, str>,
    sha: OnceLock<Str>,
}

impl Script {
    /// From its source.
    pub const fn new(source: &'static str) -> Self {
        Self { source: Cow::Borrowed(source), sha: OnceLock::new() }
    }

    pub(crate) fn composed(source: String) -> Self {
        Self { source: Cow::Owned(source), sha: OnceLock::new() }
    }

    pub(super) fn sha(&self) -> Str {
        self.sha.get_or_init(|| Str::from(sha1_hash(&self.source))).clone()
    }
}

/// The 40 hexadecimal digits that `redis.sha1hex` has for a text.
pub fn digest(text: &str) -> String {
    sha1_hash(text)
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.sha()).finish()
    }
}

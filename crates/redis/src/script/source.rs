use std::fmt;
use std::sync::OnceLock;

use fred::bytes_utils::Str;
use sha1_smol::Sha1;

/// A Lua script that runs in the server as one atomic step.
///
/// What every script keeps to: it answers with a list of texts, or with one text divided by spaces, and the first is a
/// word of the script's own (the driver takes a list that starts with `message` for a pub/sub message); numbers travel as text;
/// all keys are passed, none is built inside. It runs commands by `call`, `read` and `refusal` of `commands.lua`; what these raise,
/// because the server refused it, is its answer.
pub struct Script {
    parts: &'static [&'static str],
    text: OnceLock<ScriptText>,
}

/// Lua that every script can call.
pub(super) const COMMANDS: &str = include_str!("../lua/commands.lua");

/// The text of a script, and its digest.
#[derive(Debug)]
pub(crate) struct ScriptText {
    pub(super) source: String,
    pub(super) sha: Str,
}

impl Script {
    /// A script of these parts, one after the other. Scripts of several backends share parts.
    pub const fn new(parts: &'static [&'static str]) -> Self {
        Self { parts, text: OnceLock::new() }
    }

    pub(super) fn text(&self) -> &ScriptText {
        let source =
            || format!("{COMMANDS}local function script()\n{}\nend\nreturn alone(script)", self.parts.concat());
        self.text.get_or_init(|| ScriptText::new(source()))
    }
}

impl ScriptText {
    pub(super) fn new(source: String) -> Self {
        let sha = Str::from(digest(&source));
        Self { source, sha }
    }
}

/// The 40 hexadecimal digits that `redis.sha1hex` answers for a text.
pub fn digest(text: &str) -> String {
    Sha1::from(text).digest().to_string()
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.text().sha).finish()
    }
}

use std::fmt::Write;
use std::sync::OnceLock;

use fred::types::Value;

use crate::script::source::ScriptText;

/// A Lua function that works on one lock, so that it can run alone or with others in one script.
///
/// It is a local function of this name and of the parameters `k` and `a`: its keys are `KEYS[k + 1]` and the following, its
/// arguments `ARGV[a + 1]` and the following. It keeps to the same rules as a [`Script`](crate::Script), and answers with one
/// text.
#[derive(Debug)]
pub struct ScriptFunction {
    name: &'static str,
    keys: usize,
    arguments: usize,
    sources: &'static [&'static str],
    alone: OnceLock<ScriptText>,
}

/// The functions of a backend, which may be sent together in one batch.
#[derive(Debug)]
pub(super) struct ScriptFunctions {
    functions: &'static [&'static ScriptFunction],
    batch: ScriptText,
}

impl ScriptFunction {
    /// A function of this name, with so many keys and arguments, from its sources: functions that it calls, which other
    /// functions may share, and then its own text.
    pub const fn new(name: &'static str, keys: usize, arguments: usize, sources: &'static [&'static str]) -> Self {
        Self { name, keys, arguments, sources, alone: OnceLock::new() }
    }

    /// The script that runs this function and nothing else; without keys it answers `loaded`.
    pub(super) fn alone(&self) -> &ScriptText {
        self.alone.get_or_init(|| {
            let alone = format!("if #KEYS == 0 then\n  return 'loaded'\nend\nreturn {}(0, 0)\n", self.name);
            ScriptText::new([SCRIPT_ERROR, &self.sources.concat(), &alone].concat())
        })
    }

    pub(crate) fn name(&self) -> Value {
        Value::from_static_str(self.name)
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    pub(crate) fn takes(&self, words: usize) -> bool {
        self.keys + self.arguments == words
    }
}

impl ScriptFunctions {
    /// Functions of different names.
    pub(super) fn new(functions: &'static [&'static ScriptFunction]) -> Self {
        let mut source = SCRIPT_ERROR.to_owned();
        let mut table = String::from("local functions = {}\n");
        let mut included: Vec<&str> = Vec::new();
        for ScriptFunction { name, keys, arguments, sources, .. } in functions {
            for part in *sources {
                if !included.contains(part) {
                    included.push(part);
                    source.push_str(part);
                }
            }
            // Writing to a string does not fail.
            let _ = writeln!(table, "functions['{name}'] = {{ {name}, {keys}, {arguments} }}");
        }
        Self { functions, batch: ScriptText::new(source + &table + BATCH) }
    }

    pub(super) fn scripts(&self) -> impl Iterator<Item = &ScriptText> {
        self.functions.iter().map(|function| function.alone()).chain([self.batch()])
    }

    /// The script that runs any of the functions, one after the other.
    pub(super) fn batch(&self) -> &ScriptText {
        &self.batch
    }
}

/// Lua that every function may call.
const SCRIPT_ERROR: &str = include_str!("../lua/script_error.lua");
const BATCH: &str = include_str!("../lua/batch.lua");

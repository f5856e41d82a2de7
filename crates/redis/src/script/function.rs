use std::fmt::Write;
use std::sync::OnceLock;

use fred::types::Value;

use crate::script::source::Script;

/// A Lua function that does one step on one lock, so that it can run alone or with others in one script.
///
/// It is a local function of the step's name and of `k` and `a`: its keys are `KEYS[k + 1]` and the following, its
/// arguments `ARGV[a + 1]` and the following. Beside the house rules of a [`Script`]: it answers with a list.
#[derive(Debug)]
pub struct ScriptFunction {
    name: &'static str,
    keys: usize,
    arguments: usize,
    sources: &'static [&'static str],
    alone: OnceLock<Script>,
}

/// The steps of a backend that may leave together.
#[derive(Debug)]
pub struct ScriptFunctions {
    steps: &'static [&'static ScriptFunction],
    together: OnceLock<Script>,
}

impl ScriptFunction {
    /// By the function's name, how many keys and arguments it takes, and its sources: functions that it calls, which
    /// other steps may share, and then its own.
    pub const fn new(name: &'static str, keys: usize, arguments: usize, sources: &'static [&'static str]) -> Self {
        Self { name, keys, arguments, sources, alone: OnceLock::new() }
    }

    /// The script that runs this step and nothing else; without keys it answers `loaded`.
    pub fn alone(&self) -> &Script {
        self.alone.get_or_init(|| {
            let alone = format!("if #KEYS == 0 then\n  return 'loaded'\nend\nreturn {}(0, 0)\n", self.name);
            Script::composed([SCRIPT_ERROR, &self.sources.concat(), &alone].concat())
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
    /// Of these, each with a name of its own.
    pub const fn new(steps: &'static [&'static ScriptFunction]) -> Self {
        Self { steps, together: OnceLock::new() }
    }

    pub(crate) fn scripts(&self) -> impl Iterator<Item = &Script> {
        self.steps.iter().map(|step| step.alone()).chain([self.together()])
    }

    /// The script that runs any of them, one after the other.
    pub fn together(&self) -> &Script {
        self.together.get_or_init(|| {
            let mut source = SCRIPT_ERROR.to_owned();
            let mut table = String::from("local steps = {}\n");
            let mut included: Vec<&str> = Vec::new();
            for ScriptFunction { name, keys, arguments, sources, .. } in self.steps {
                for part in *sources {
                    if !included.contains(part) {
                        included.push(part);
                        source.push_str(part);
                    }
                }
                // Writing to a string does not fail.
                let _ = writeln!(table, "steps['{name}'] = {{ {name}, {keys}, {arguments} }}");
            }
            Script::composed(source + &table + BATCH)
        })
    }
}

/// A source for steps that draw from a counter: see there.
pub const NEXT_EPOCH: &str = include_str!("../lua/next_epoch.lua");

/// What every step may call.
const SCRIPT_ERROR: &str = include_str!("../lua/script_error.lua");
const BATCH: &str = include_str!("../lua/batch.lua");

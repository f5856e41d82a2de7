use std::fmt::Write;

use crate::script::source::{COMMANDS, ScriptText};

/// A Lua function that works on locks, so that it can run for one, and in one script with others for many.
///
/// It keeps to the same rules as a [`Script`](crate::Script), and answers with one text for each lock.
#[derive(Debug)]
pub struct ScriptFunction {
    pub(crate) name: &'static str,
    pub(crate) keys: usize,
    own: usize,
    common: usize,
    for_many: bool,
    sources: &'static [&'static str],
}

/// The functions of a backend, which may be sent together in one batch.
#[derive(Debug)]
pub(crate) struct ScriptFunctions {
    functions: &'static [&'static ScriptFunction],
    /// Runs any of the functions.
    pub(crate) script: ScriptText,
}

impl ScriptFunction {
    /// A function for one lock, of this name, with so many keys and arguments, from its sources: functions that it calls,
    /// which other functions may share, and then its own text.
    ///
    /// It is a local function of the parameters `k` and `a`: its keys are `KEYS[k + 1]` and the following, its arguments
    /// `ARGV[a + 1]` and the following.
    pub const fn new(name: &'static str, keys: usize, arguments: usize, sources: &'static [&'static str]) -> Self {
        Self { name, keys, own: arguments, common: 0, for_many: false, sources }
    }

    /// A function for many locks at once. Each has so many keys and `own` arguments; the last `common` arguments of a call
    /// are sent once for neighbours with the same.
    ///
    /// It is a local function of the parameters `count`, `k` and `a`, and answers with a list. Its keys are `KEYS[k + 1]` and
    /// the following, those of one lock after those of the other; its arguments are behind `ARGV[a]`, first the common ones.
    /// What it raises is the answer for all its locks, so it raises nothing after its first write.
    pub const fn for_many(
        name: &'static str,
        keys: usize,
        own: usize,
        common: usize,
        sources: &'static [&'static str],
    ) -> Self {
        Self { name, keys, own, common, for_many: true, sources }
    }

    /// How many words stand before those that neighbours may have in common.
    pub(crate) fn own(&self) -> usize {
        self.keys + self.own
    }

    pub(crate) fn takes(&self, words: usize) -> bool {
        self.own() + self.common == words
    }
}

impl ScriptFunctions {
    /// Functions of different names.
    pub(crate) fn new(functions: &'static [&'static ScriptFunction]) -> Self {
        let mut source = COMMANDS.to_owned();
        let mut find = String::from("local function find(name)\n");
        let mut included: Vec<&str> = Vec::new();
        for ScriptFunction { name, keys, own, common, for_many, sources } in functions {
            for part in *sources {
                if !included.contains(part) {
                    included.push(part);
                    source.push_str(part);
                }
            }
            // Writing to a string does not fail.
            let _ = writeln!(find, "  if name == '{name}' then return {keys}, {common}, {own}, {name}, {for_many} end");
        }
        Self { functions, script: ScriptText::new(source + &find + "end\n" + BATCH) }
    }

    /// The place of a function among them, and how many they are.
    pub(super) fn place(&self, function: &ScriptFunction) -> (usize, usize) {
        let is_it = |known: &&&ScriptFunction| std::ptr::eq(**known, function);
        let place = self.functions.iter().take_while(|known| !is_it(known)).count();
        (place, self.functions.len())
    }
}

const BATCH: &str = include_str!("../lua/batch.lua");

use std::time::Duration;

use crate::script::arguments::{EncodedArguments, ScriptArguments};
use crate::script::function::{ScriptFunction, ScriptFunctions};

/// A call of a function, with its arguments and its time limit.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) function: &'static ScriptFunction,
    pub(super) arguments: ScriptArguments,
    pub(super) limit: Duration,
}

impl Request {
    /// The key that it is about; two requests with different ones can be carried out in any order.
    fn key(&self) -> &str {
        if self.arguments.count() == 0 { "" } else { self.arguments.get(0) }
    }

    fn common(&self) -> &str {
        if self.arguments.count() > self.function.own() { self.arguments.from(self.function.own()) } else { "" }
    }
}

/// Puts the calls of one function next to each other, those of the first function first, so that they are few runs. Calls for
/// one key stay in the order in which they came: a release that went ahead of the claim that it takes back would leave a lock
/// that nobody has.
pub(super) fn sort<R>(functions: &ScriptFunctions, requests: &mut [R], request: impl Fn(&R) -> &Request) {
    let mut ranks: Vec<(usize, &str)> = Vec::with_capacity(requests.len());
    for one in &*requests {
        let one = request(one);
        let (place, count) = functions.place(one.function);
        let key = one.key();
        let before = ranks.iter().filter(|(_, other)| *other == key).map(|(rank, _)| *rank).max().unwrap_or(0);
        let rank = if place >= before { place } else { place + (before - place).div_ceil(count) * count };
        ranks.push((rank, key));
    }
    if !ranks.is_sorted_by_key(|(rank, _)| *rank) {
        let ranks: Vec<usize> = ranks.into_iter().map(|(rank, _)| rank).collect();
        let mut ranks = ranks.into_iter();
        // The ranks are asked for once each, in the order of the requests.
        requests.sort_by_cached_key(|_| ranks.next());
    }
}

/// The keys of requests, and their runs, as `batch.lua` takes them; and how many keys there are.
pub(super) fn encode<'r>(requests: impl Iterator<Item = &'r Request> + Clone) -> (usize, EncodedArguments) {
    let (mut words, mut bytes, mut keys) = (0, 0, 0);
    for request in requests.clone() {
        words += request.arguments.count() + 2;
        bytes += request.arguments.bytes() + request.function.name().len() + 4;
        keys += request.function.keys();
    }
    let mut all = ScriptArguments::with_capacity(words, bytes);
    for request in requests.clone() {
        (0..request.function.keys()).for_each(|index| all.push(request.arguments.get(index)));
    }
    let mut rest = requests.peekable();
    while let Some(first) = rest.next() {
        let (function, common) = (first.function, first.common());
        let belongs = |other: &&Request| std::ptr::eq(other.function, function) && other.common() == common;
        let mut run = vec![first];
        while let Some(next) = rest.next_if(belongs) {
            run.push(next);
        }
        all.push(function.name());
        all = all.text(run.len());
        (function.own()..first.arguments.count()).for_each(|index| all.push(first.arguments.get(index)));
        for request in run {
            (function.keys()..function.own()).for_each(|index| all.push(request.arguments.get(index)));
        }
    }
    (keys, all.encode())
}

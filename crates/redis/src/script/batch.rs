use std::time::Duration;

use crate::script::arguments::{EncodedArguments, ScriptArguments};
use crate::script::function::{ScriptFunction, ScriptFunctions};

/// A call of a function, with its arguments and its time limit.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) function: &'static ScriptFunction,
    pub(crate) arguments: ScriptArguments,
    pub(crate) limit: Duration,
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

/// The calls of one function next to each other, those of the first function first, so that they are few runs; and the place of
/// each among `requests`. Calls for one key stay in the order in which they came: a release that went ahead of the claim that it
/// takes back would leave a lock that nobody has.
pub(super) fn sorted<'r>(functions: &ScriptFunctions, requests: &[&'r Request]) -> (Vec<usize>, Vec<&'r Request>) {
    let mut ranks: Vec<(usize, &str)> = Vec::with_capacity(requests.len());
    let mut highest = 0;
    for request in requests {
        let ((place, count), key) = (functions.place(request.function), request.key());
        let mut rank = place;
        // Only a call that would go ahead of others can go ahead of one for its own key.
        if place < highest {
            let before =
                ranks.iter().filter(|(rank, other)| *rank > place && *other == key).map(|(rank, _)| *rank).max();
            rank += before.map_or(0, |before| (before - place).div_ceil(count) * count);
        }
        highest = highest.max(rank);
        ranks.push((rank, key));
    }
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|place| ranks[*place].0);
    let requests = order.iter().map(|place| requests[*place]).collect();
    (order, requests)
}

/// The keys of requests, and their runs, as `batch.lua` takes them; and how many keys there are.
pub(super) fn encode<'r>(requests: impl Iterator<Item = &'r Request> + Clone) -> (usize, EncodedArguments) {
    let keys = requests.clone().map(|request| request.function.keys).sum();
    let mut all = ScriptArguments::with_capacity(
        requests.clone().map(|request| request.arguments.count() + 2).sum(),
        requests.clone().map(|request| request.arguments.bytes() + request.function.name.len() + 4).sum(),
    );
    for request in requests.clone() {
        (0..request.function.keys).for_each(|index| all.push(request.arguments.get(index)));
    }
    let mut rest = requests.peekable();
    while let Some(first) = rest.next() {
        let (function, common) = (first.function, first.common());
        let belongs = |other: &&Request| std::ptr::eq(other.function, function) && other.common() == common;
        let mut run = vec![first];
        while let Some(next) = rest.next_if(belongs) {
            run.push(next);
        }
        all.push(function.name);
        all = all.text(run.len());
        (function.own()..first.arguments.count()).for_each(|index| all.push(first.arguments.get(index)));
        for request in run {
            (function.keys..function.own()).for_each(|index| all.push(request.arguments.get(index)));
        }
    }
    (keys, all.encode())
}

#[cfg(test)]
mod tests {
    use fred::types::Value;

    use super::*;

    static RELEASE: ScriptFunction = ScriptFunction::for_many("release", 1, 1, 0, &[]);
    static CLAIM: ScriptFunction = ScriptFunction::for_many("claim", 1, 1, 1, &[]);

    static FUNCTIONS: [&ScriptFunction; 2] = [&RELEASE, &CLAIM];

    fn request(function: &'static ScriptFunction, words: &str) -> Request {
        let arguments = words.split(' ').fold(ScriptArguments::default(), ScriptArguments::word);
        Request { function, arguments, limit: Duration::from_secs(1) }
    }

    fn in_order(requests: &[Request]) -> Vec<String> {
        let (order, sorted) = sorted(&ScriptFunctions::new(&FUNCTIONS), &requests.iter().collect::<Vec<_>>());
        assert!(order.iter().zip(&sorted).all(|(place, request)| std::ptr::eq(&raw const requests[*place], *request)));
        sorted.iter().map(|request| format!("{} {}", request.function.name, request.arguments.get(1))).collect()
    }

    #[test]
    fn releases_go_ahead_but_not_ahead_of_a_claim_of_the_same_key() {
        let requests = [
            request(&CLAIM, "a 1 ttl"),
            request(&RELEASE, "b 2"),
            request(&RELEASE, "a 1"),
            request(&CLAIM, "c 3 ttl"),
            request(&CLAIM, "a 4 ttl"),
            request(&RELEASE, "c 5"),
            request(&RELEASE, "d 6"),
        ];
        let expected = ["release 2", "release 6", "claim 1", "claim 3", "release 1", "release 5", "claim 4"];
        assert_eq!(in_order(&requests), expected);
        let requests = [request(&CLAIM, "a 1 ttl"), request(&CLAIM, "c 3 ttl")];
        assert_eq!(in_order(&requests), ["claim 1", "claim 3"]);
    }

    #[test]
    fn what_neighbours_have_in_common_is_sent_once() {
        let requests =
            [request(&RELEASE, "a 1"), request(&CLAIM, "b 2 x"), request(&CLAIM, "c 3 x"), request(&CLAIM, "d 4 y")];
        let (keys, arguments) = encode(requests.iter());
        let words: Vec<String> = arguments.iter().filter_map(Value::into_string).collect();
        assert_eq!(words.join(" "), "a b c d release 1 1 claim 2 x 2 3 claim 1 y 4");
        assert_eq!(keys, 4);
    }
}

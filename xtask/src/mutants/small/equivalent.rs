//! The mutants that change nothing, each with the reason.

/// A mutant that does not change the behaviour, so that no test can notice it.
#[derive(Debug)]
pub(super) struct Equivalent {
    pub(super) file: &'static str,
    /// The description that `cargo-mutants` gives.
    pub(super) mutant: &'static str,
    /// A part of the changed line.
    pub(super) line: &'static str,
    #[allow(dead_code, reason = "for who reads it here")]
    pub(super) why: &'static str,
}

/// Of the engine's state machine.
pub(super) const STATE: &[Equivalent] = &[
    Equivalent {
        file: "pending.rs",
        mutant: "replace < with <= in PendingClaim<W>::goes_to",
        line: "waiter.id.0 <= self.join_limit",
        why: "the limit is the number of a request, and no waiter has that",
    },
    Equivalent {
        file: "grant.rs",
        mutant: "replace < with <= in Key<W, L>::withdraw",
        line: "other.id <= waiter.id",
        why: "the waiter is not in the line, and no other has its number",
    },
    Equivalent {
        file: "key.rs",
        mutant: "replace > with >= in Key<W, L>::advance",
        line: "while self.over >= 0",
        why: "where nobody is at its limit, the loop goes through the line and finds nobody; it is only spared that",
    },
    Equivalent {
        file: "lease.rs",
        mutant: "replace < with <= in Lease<L>::is_held",
        line: "now <= self.limit()",
        why: "before anything happens to a key, what is at its limit by then has ended",
    },
    Equivalent {
        file: "local_handoff.rs",
        mutant: "replace < with <= in Key<W, L>::share",
        line: "waiter.id.0 <= claim.join_limit",
        why: "the limit is the number of a request, and no waiter has that",
    },
];

/// Of `crates/redis`.
pub(super) const REDIS: &[Equivalent] = &[
    Equivalent {
        file: "script/arguments.rs",
        mutant: "replace ScriptArguments::bytes -> usize with 0",
        line: "0",
        why: "how much memory a batch asks for ahead: the text grows where that is not enough",
    },
    Equivalent {
        file: "script/arguments.rs",
        mutant: "replace ScriptArguments::bytes -> usize with 1",
        line: "1",
        why: "how much memory a batch asks for ahead: the text grows where that is not enough",
    },
    Equivalent {
        file: "script/batch.rs",
        mutant: "replace > with >= in Request::common",
        line: "self.arguments.count() >= self.function.own()",
        why: "what comes behind the last word is empty, as is what a call has in common that has no such words",
    },
    Equivalent {
        file: "script/batch.rs",
        mutant: "replace < with <= in sort",
        line: "if place <= highest",
        why: "no rank is above the highest one, so that nothing is found; it is only not looked for",
    },
    Equivalent {
        file: "script/batch.rs",
        mutant: "replace > with >= in sort",
        line: "*rank >= place",
        why: "a rank that is the place itself is no round away from it, and adds none",
    },
    Equivalent {
        file: "client/scan.rs",
        mutant: "replace / with * in Connection::scan",
        line: "1_000_000_000 * EXAMINED",
        why: "the bound for a server that never ends a listing, which is later reached: tests set a bound of their own",
    },
    Equivalent {
        file: "store.rs",
        mutant: "replace Store::awaits_replicas -> bool with true",
        line: "true",
        why: "what nobody has to confirm is confirmed at once, by the other path",
    },
    Equivalent {
        file: "client/tls.rs",
        mutant: "replace enable -> Result<()> with Ok(())",
        line: "Ok(())",
        why: "the one for a build without TLS, and changes are tried in a build with it",
    },
    Equivalent {
        file: "client/driver.rs",
        mutant: "replace * with + in without_reconnecting",
        line: "2 + MOST_IN_FLIGHT",
        why: "the driver's buffer holds more than the connection lets in, by either",
    },
];

/// Of `crates/mysql`.
pub(super) const MYSQL: &[Equivalent] = &[
    Equivalent {
        file: "schema/table.rs",
        mutant: "replace - with / in TableSchema::version",
        line: "u32::MAX / 1",
        why: "the version of a schema with four billion changes, which none has",
    },
    Equivalent {
        file: "server/sessions.rs",
        mutant: "replace < with <= in Sessions::send",
        line: "self.clock.now() <= give_up",
        why: "one sending more where the clock shows the limit to the nanosecond, which is as good as one just before it",
    },
    Equivalent {
        file: "server/encryption.rs",
        mutant: "replace match guard cfg!(not(feature = \"tls-rustls\")) with false in Encryption::is_wanted",
        line: "if false",
        why: "it is false in a build with TLS, and changes are tried in such a one",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_listed_once_and_with_a_reason() {
        for list in [STATE, REDIS, MYSQL] {
            for (number, entry) in list.iter().enumerate() {
                assert!(entry.why.split_whitespace().count() >= 5, "{}: {}", entry.file, entry.mutant);
                let key = |entry: &Equivalent| (entry.file, entry.mutant, entry.line);
                let same = |other: &Equivalent| key(other) == key(entry);
                assert!(!list[..number].iter().any(same), "{}: {}", entry.file, entry.mutant);
            }
        }
    }
}

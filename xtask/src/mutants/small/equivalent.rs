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
        file: "step.rs",
        mutant: "replace match guard **last == terms with false in Step<'_, W, L>::terms",
        line: "Some(last) if false",
        why: "leases with equal terms that do not share them only take more memory",
    },
    Equivalent {
        file: "pending.rs",
        mutant: "replace < with <= in PendingClaim<W>::goes_to",
        line: "waiter.id.0 <= self.join_limit",
        why: "the limit is the number of a request, and no waiter has that",
    },
    Equivalent {
        file: "grant.rs",
        mutant: "replace < with <= in Key<W, L>::back_in_line",
        line: "other.id <= waiter.id",
        why: "the waiter is not in the line, and no other has its number",
    },
    Equivalent {
        file: "key.rs",
        mutant: "replace > with >= in Key<W, L>::advance",
        line: "while self.queue.over >= 0",
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
        file: "keyspace/json.rs",
        mutant: "replace < with <= in push_quoted",
        line: "control <= ' '",
        why: "a blank that is written as an escape is read as a blank",
    },
    Equivalent {
        file: "keyspace/json.rs",
        mutant: "delete match arm ',' | ':' in Reader<'t>::skip_value",
        line: "",
        why: "what is no value does not go on in the next arm either",
    },
    Equivalent {
        file: "keyspace/json.rs",
        mutant: "replace | with ^ in unit",
        line: "number << 4 ^ ",
        why: "the four bits are empty",
    },
    Equivalent {
        file: "script/batch.rs",
        mutant: "replace > with >= in Request::common",
        line: "self.arguments.count() >= self.function.own()",
        why: "what comes behind the last word is empty, as is what a call has in common that has no such words",
    },
    Equivalent {
        file: "script/batch.rs",
        mutant: "replace < with <= in sorted",
        line: "if place <= highest",
        why: "no rank is above the highest one, so that nothing is found; it is only not looked for",
    },
    Equivalent {
        file: "script/batch.rs",
        mutant: "replace > with >= in sorted",
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
        file: "client/cluster.rs",
        mutant: "replace >> with << in Cluster::any",
        line: "hash_one(0) << 32",
        why: "which node is listened to: any of them will do, as a message reaches the subscribers of all",
    },
    Equivalent {
        file: "client/cluster.rs",
        mutant: "replace > with >= in Cluster::send",
        line: ">= within / 2",
        why: "whether the very moment belongs to the first half",
    },
    Equivalent {
        file: "client/connection.rs",
        mutant: "replace match guard link.client().is_clustered() with true in Connection::primaries",
        line: "if true => match link.client().cached_cluster_state()",
        why: "a client of one server has no map of a Cluster, and the answer is the same without one",
    },
    Equivalent {
        file: "client/connection.rs",
        mutant: "replace match guard link.client().is_clustered() with true in Connection::writers",
        line: "if true => {",
        why: "a client of one server has no map of a Cluster, and the answer is the same without one",
    },
    Equivalent {
        file: "client/endpoint.rs",
        mutant: "replace match guard !name.is_empty() with true in first_host",
        line: "if true => name.to_owned()",
        why: "what reads the URL answers no host for an empty one",
    },
    Equivalent {
        file: "client/supervisor.rs",
        mutant: "delete field max_attempts from struct Options expression in is_useless",
        line: "timeout: Some(Duration::from_secs(1))",
        why: "only clients of our own are looked after, and those try every command once",
    },
    Equivalent {
        file: "pubsub/connection.rs",
        mutant: "replace PubSubConnection::close with ()",
        line: "()",
        why: "the connection is dropped with it, which ends it too, without a goodbye",
    },
    Equivalent {
        file: "pubsub/notifications.rs",
        mutant: "replace < with <= in <impl Notifications for PubSub>::subscribe",
        line: "self.clock.now() <= until",
        why: "whether the very moment belongs to the pause",
    },
    Equivalent {
        file: "script/run.rs",
        mutant: "replace && with || in Connection::evaluate",
        line: "self.is_clustered() || keys > 0",
        why: "beside a Cluster the slot means nothing, and in it a script without keys runs on any node",
    },
    Equivalent {
        file: "script/run.rs",
        mutant: "replace > with >= in Connection::evaluate",
        line: "self.is_clustered() && keys >= 0",
        why: "a script without keys runs on any node",
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
        file: "lease/releases.rs",
        mutant: "replace - with / in stamp",
        line: "u32::MAX / 1",
        why: "one number more of four billions, for a batch of releases",
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

/// Of `crates/postgres`.
pub(super) const POSTGRES: &[Equivalent] = &[
    Equivalent {
        file: "builder.rs",
        mutant: "replace Postgres::builder -> PostgresBuilder with Default::default()",
        line: "Default::default()",
        why: "a builder that says nothing is the default one",
    },
    Equivalent {
        file: "admin.rs",
        mutant: "delete - in force_release",
        line: "unwrap_or( 1)",
        why: "no grant has the number 1, which the first millisecond of the epoch had",
    },
    Equivalent {
        file: "address.rs",
        mutant: "replace == with != in check",
        line: "!= SslMode::Require && cfg!",
        why: "it is false in a build with TLS, and changes are tried in such a one",
    },
    Equivalent {
        file: "tls.rs",
        mutant: "replace tls -> Result<Tls> with Ok(Default::default())",
        line: "Ok(Default::default())",
        why: "the one for a build without TLS, and changes are tried in a build with it",
    },
    Equivalent {
        file: "sessions.rs",
        mutant: "replace < with <= in Sessions::run",
        line: "self.0.clock.now() <= give_up",
        why: "whether the very moment belongs to the second",
    },
    Equivalent {
        file: "claims.rs",
        mutant: "replace <impl Operations for Claims>::row -> Option<&[u8]> with None",
        line: "None",
        why: "the statement answers two claims of one key one after the other, as if each had come alone",
    },
    Equivalent {
        file: "releases.rs",
        mutant: "replace <impl Operations for Releases>::row -> Option<&[u8]> with None",
        line: "None",
        why: "the statement answers two releases of one key one after the other, as if each had come alone",
    },
];

/// Of `crates/etcd`.
pub(super) const ETCD: &[Equivalent] = &[
    Equivalent {
        file: "builder.rs",
        mutant: "replace Etcd::builder -> EtcdBuilder with Default::default()",
        line: "Default::default()",
        why: "a builder that says nothing is the default one",
    },
    Equivalent {
        file: "address.rs",
        mutant: "replace secured -> Result<Endpoint> with Ok(Default::default())",
        line: "Ok(Default::default())",
        why: "the one for a build without TLS, and changes are tried in a build with it",
    },
    Equivalent {
        file: "leases.rs",
        mutant: "replace > with >= in Leases::was_alive",
        line: "known.alive.len() >= known.most",
        why: "how often those are looked for that count no more: at one fewer",
    },
    Equivalent {
        file: "leases.rs",
        mutant: "replace * with + in Leases::was_alive",
        line: "known.alive.len() + 2 + 64",
        why: "how often those are looked for that count no more: a constant would do",
    },
    Equivalent {
        file: "leases.rs",
        mutant: "replace * with / in Leases::was_alive",
        line: "known.alive.len() / 2 + 64",
        why: "how often those are looked for that count no more: a constant would do",
    },
    Equivalent {
        file: "renew.rs",
        mutant: "delete - in prolong",
        line: "unwrap_or( 1)",
        why: "no lease is of a second only: a lease that has ended is replaced by either, or not found",
    },
    Equivalent {
        file: "store.rs",
        mutant: "replace < with <= in Store::waits_no_more",
        line: "waiters.len() <= before",
        why: "who watches looks once more who waits, and finds what it knew",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_listed_once_and_with_a_reason() {
        for list in [STATE, REDIS, MYSQL, POSTGRES, ETCD] {
            for (number, entry) in list.iter().enumerate() {
                assert!(entry.why.split_whitespace().count() >= 5, "{}: {}", entry.file, entry.mutant);
                let key = |entry: &Equivalent| (entry.file, entry.mutant, entry.line);
                let same = |other: &Equivalent| key(other) == key(entry);
                assert!(!list[..number].iter().any(same), "{}: {}", entry.file, entry.mutant);
            }
        }
    }
}

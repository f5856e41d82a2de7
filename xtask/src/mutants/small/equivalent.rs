//! The mutants that change nothing, each with the reason.

/// A mutant that does not change the behaviour, so that no test can notice it.
#[derive(Debug)]
pub(super) struct Equivalent {
    pub(super) file: &'static str,
    /// The description that `cargo-mutants` gives.
    pub(super) mutant: &'static str,
    /// A part of the changed line.
    pub(super) line: &'static str,
    pub(super) why: &'static str,
}

macro_rules! equivalents {
    ($($file:literal: $mutant:literal at $line:literal, $why:literal;)*) => {
        &[$(Equivalent { file: $file, mutant: $mutant, line: $line, why: $why }),*]
    };
}

/// Of the engine's state machine.
pub(super) const STATE: &[Equivalent] = equivalents! {
    "step.rs": "replace match guard **last == terms with false in Step<'_, W, L>::terms" at "Some(last) if false",
        "leases with equal terms that do not share them only take more memory";
    "pending.rs": "replace < with <= in PendingClaim<W>::goes_to" at "waiter.id.0 <= self.join_limit",
        "the limit is the number of a request, and no waiter has that";
    "grant.rs": "replace < with <= in Key<W, L>::back_in_line" at "other.id <= waiter.id",
        "the waiter is not in the line, and no other has its number";
    "key.rs": "replace > with >= in Key<W, L>::advance" at "while self.queue.over >= 0",
        "where nobody is at its limit, the loop goes through the line and finds nobody; it is only spared that";
    "lease.rs": "replace < with <= in Lease<L>::is_held" at "now <= self.limit()",
        "before anything happens to a key, what is at its limit by then has ended";
    "local_handoff.rs": "replace < with <= in Key<W, L>::share" at "waiter.id.0 <= claim.join_limit",
        "the limit is the number of a request, and no waiter has that";
};

/// Of `crates/redis`.
pub(super) const REDIS: &[Equivalent] = equivalents! {
    "script/arguments.rs": "replace ScriptArguments::bytes -> usize with 0" at "0",
        "how much memory a batch asks for ahead: the text grows where that is not enough";
    "script/arguments.rs": "replace ScriptArguments::bytes -> usize with 1" at "1",
        "how much memory a batch asks for ahead: the text grows where that is not enough";
    "keyspace/json.rs": "replace < with <= in push_quoted" at "control <= ' '",
        "a blank that is written as an escape is read as a blank";
    "keyspace/json.rs": "delete match arm ',' | ':' in Reader<'t>::skip_value" at "",
        "what is no value does not go on in the next arm either";
    "keyspace/json.rs": "replace | with ^ in unit" at "number << 4 ^ ",
        "the four bits are empty";
    "script/batch.rs": "replace > with >= in Request::common" at "self.arguments.count() >= self.function.own()",
        "what comes behind the last word is empty, as is what a call has in common that has no such words";
    "script/batch.rs": "replace < with <= in sorted" at "if place <= highest",
        "no rank is above the highest one, so that nothing is found; it is only not looked for";
    "script/batch.rs": "replace > with >= in sorted" at "*rank >= place",
        "a rank that is the place itself is no round away from it, and adds none";
    "client/scan.rs": "replace / with * in Connection::scan" at "1_000_000_000 * EXAMINED",
        "the bound for a server that never ends a listing, which is later reached: tests set a bound of their own";
    "client/cluster.rs": "replace >> with << in Cluster::any" at "hash_one(0) << 32",
        "which node is listened to: any of them will do, as a message reaches the subscribers of all";
    "client/cluster.rs": "replace > with >= in Cluster::send" at ">= within / 2",
        "whether the very moment belongs to the first half";
    "client/connection.rs": "replace match guard link.client().is_clustered() with true in Connection::primaries"
        at "if true => match link.client().cached_cluster_state()",
        "a client of one server has no map of a Cluster, and the answer is the same without one";
    "client/connection.rs": "replace match guard link.client().is_clustered() with true in Connection::writers"
        at "if true => {",
        "a client of one server has no map of a Cluster, and the answer is the same without one";
    "client/endpoint.rs": "replace match guard !name.is_empty() with true in first_host"
        at "if true => name.to_owned()",
        "what reads the URL answers no host for an empty one";
    "client/supervisor.rs": "delete field max_attempts from struct Options expression in is_useless"
        at "timeout: Some(Duration::from_secs(1))",
        "only clients of our own are looked after, and those try every command once";
    "pubsub/connection.rs": "replace PubSubConnection::close with ()" at "()",
        "the connection is dropped with it, which ends it too, without a goodbye";
    "pubsub/notifications.rs": "replace < with <= in <impl Notifications for PubSub>::subscribe"
        at "self.clock.now() <= until",
        "whether the very moment belongs to the pause";
    "script/run.rs": "replace && with || in Connection::evaluate" at "self.is_clustered() || keys > 0",
        "beside a Cluster the slot means nothing, and in it a script without keys runs on any node";
    "script/run.rs": "replace > with >= in Connection::evaluate" at "self.is_clustered() && keys >= 0",
        "a script without keys runs on any node";
    "client/tls.rs": "replace enable -> Result<()> with Ok(())" at "Ok(())",
        "the one for a build without TLS, and changes are tried in a build with it";
    "client/driver.rs": "replace * with + in without_reconnecting" at "2 + MOST_IN_FLIGHT",
        "the driver's buffer holds more than the connection lets in, by either";
};

/// Of `crates/mysql`.
pub(super) const MYSQL: &[Equivalent] = equivalents! {
    "lease/releases.rs": "replace - with / in stamp" at "u32::MAX / 1",
        "one number more of four billions, for a batch of releases";
    "server/sessions.rs": "replace < with <= in Sessions::send" at "self.clock.now() <= give_up",
        "one sending more where the clock shows the limit to the nanosecond, which is as good as one just before it";
    "server/encryption.rs": "replace match guard cfg!(not(feature = \"tls-rustls\")) with false in Encryption::is_wanted"
        at "if false",
        "it is false in a build with TLS, and changes are tried in such a one";
};

/// Of `crates/postgres`.
pub(super) const POSTGRES: &[Equivalent] = equivalents! {
    "builder.rs": "replace Postgres::builder -> PostgresBuilder with Default::default()" at "Default::default()",
        "a builder that says nothing is the default one";
    "admin.rs": "delete - in force_release" at "unwrap_or( 1)",
        "no grant has the number 1, which the first millisecond of the epoch had";
    "address.rs": "replace == with != in check" at "!= SslMode::Require && cfg!",
        "it is false in a build with TLS, and changes are tried in such a one";
    "tls.rs": "replace tls -> Result<Tls> with Ok(Default::default())" at "Ok(Default::default())",
        "the one for a build without TLS, and changes are tried in a build with it";
    "sessions.rs": "replace < with <= in Sessions::run" at "self.0.clock.now() <= give_up",
        "whether the very moment belongs to the second";
    "claims.rs": "replace <impl Operations for Claims>::row -> Option<&[u8]> with None" at "None",
        "the statement answers two claims of one key one after the other, as if each had come alone";
    "releases.rs": "replace <impl Operations for Releases>::row -> Option<&[u8]> with None" at "None",
        "the statement answers two releases of one key one after the other, as if each had come alone";
};

/// Of `crates/etcd`.
pub(super) const ETCD: &[Equivalent] = equivalents! {
    "builder.rs": "replace Etcd::builder -> EtcdBuilder with Default::default()" at "Default::default()",
        "a builder that says nothing is the default one";
    "address.rs": "replace secured -> Result<Endpoint> with Ok(Default::default())" at "Ok(Default::default())",
        "the one for a build without TLS, and changes are tried in a build with it";
    "leases.rs": "replace > with >= in Leases::was_alive" at "known.alive.len() >= known.most",
        "how often those are looked for that count no more: at one fewer";
    "leases.rs": "replace * with + in Leases::was_alive" at "known.alive.len() + 2 + 64",
        "how often those are looked for that count no more: a constant would do";
    "leases.rs": "replace * with / in Leases::was_alive" at "known.alive.len() / 2 + 64",
        "how often those are looked for that count no more: a constant would do";
    "renew.rs": "delete - in prolong" at "unwrap_or( 1)",
        "no lease is of a second only: a lease that has ended is replaced by either, or not found";
    "store.rs": "replace < with <= in Store::waits_no_more" at "waiters.len() <= before",
        "who watches looks once more who waits, and finds what it knew";
};

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

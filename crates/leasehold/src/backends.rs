use leasehold_core::Kind;

// One line for each backend: its module here, its crate, the feature that builds it in, and its schemes, which an error names
// in a build without that feature.
built_in! {
    file = leasehold_file, "file", ["file"];
    redis_single = leasehold_redis_single, "redis", [
        "redis", "rediss", "redis-sentinel", "rediss-sentinel", "redis-cluster", "rediss-cluster",
        "valkey", "valkeys", "valkey-sentinel", "valkeys-sentinel", "valkey-cluster", "valkeys-cluster"
    ];
    redis_reentrant = leasehold_redis_reentrant, "redis", ["reentrant"];
    redis_rw = leasehold_redis_rw, "redis", ["redis-rw", "rediss-rw"];
    redlock = leasehold_redlock, "redis", ["redlock"];
    mysql_unique = leasehold_mysql_unique, "mysql", ["mysql"];
    mysql_rw = leasehold_mysql_rw, "mysql", ["mysql-rw"];
    postgres = leasehold_postgres, "postgres", ["postgres", "postgresql"];
    etcd = leasehold_etcd, "etcd", ["etcd", "etcds"];
    agent = leasehold_agent, "agent", ["agent"];
}

macro_rules! built_in {
    ($($module:ident = $package:ident, $feature:literal, [$($scheme:literal),+];)+) => {
        $(
            #[cfg(feature = $feature)]
            #[doc(no_inline)]
            pub use $package as $module;
        )+

        /// The kinds of store that are built in, in the order of the tables.
        pub(crate) const BUILT_IN: &[Kind] = &[$(#[cfg(feature = $feature)] $package::KIND),+];

        /// The feature that builds a kind of store in, and its schemes.
        pub(crate) const FEATURES: &[(&str, &[&str])] = &[$(($feature, &[$($scheme),+])),+];
    };
}
use built_in;

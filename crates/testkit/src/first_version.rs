//! The scripts of the first version on Redis, whose counters are bare numbers in milliseconds: for tests that programs of
//! two versions stay away from each other's entries, and for benches.

/// What all its scripts begin with.
pub const SCRIPT_ERROR: &str = include_str!("first_version/script_error.lua");

/// `try_acquire` and `release` of `redis-single`: local functions of the parameters `k` and `a`.
pub const REDIS_SINGLE: &str = concat!(
    include_str!("first_version/script_error.lua"),
    include_str!("first_version/next_epoch.lua"),
    include_str!("first_version/redis_single.lua"),
);

/// `try_acquire` of `redis-reentrant`, likewise.
pub const REDIS_REENTRANT: &str = concat!(
    include_str!("first_version/script_error.lua"),
    include_str!("first_version/next_epoch.lua"),
    include_str!("first_version/redis_reentrant.lua"),
);

/// The end of a script that carries out `try_acquire` alone.
pub const TRY_ACQUIRE: &str = "return try_acquire(0, 0)\n";

/// The end of a script that carries out several functions in one batch; a table `functions` stands in front of it.
pub const BATCH: &str = include_str!("first_version/batch.lua");

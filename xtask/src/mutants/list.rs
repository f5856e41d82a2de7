//! The mutants: the faults, and the lines that are replaced.

/// A mutant: one line of a real backend, or of the engine, is replaced by a wrong one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mutant {
    /// The backend whose tests run.
    pub(super) backend: &'static str,
    /// The tests that have to notice it: the suite (`conformance`), a module of the backend's program of tests, its unit
    /// tests (`lib`), or its `model`.
    pub(super) tests: &'static str,
    /// The fault, as a user would describe it.
    pub(super) wrong: &'static str,
    pub(super) file: &'static str,
    /// The right text, which is in the file exactly once.
    pub(super) right: &'static str,
    pub(super) instead: &'static str,
}

const CLAIM: &str = "crates/core/src/engine/state/claim.rs";
const STATE_GRANT: &str = "crates/core/src/engine/state/grant.rs";
const STATE_KEY: &str = "crates/core/src/engine/state/key.rs";
const STATE_LEASE: &str = "crates/core/src/engine/state/lease.rs";
const STATE_LOCAL_HANDOFF: &str = "crates/core/src/engine/state/local_handoff.rs";
const STATE_NOTIFICATIONS: &str = "crates/core/src/engine/state/notifications.rs";
const STATE_PENDING: &str = "crates/core/src/engine/state/pending.rs";
const STATE_RELEASE: &str = "crates/core/src/engine/state/release.rs";
const STATE_TAKE_OVER: &str = "crates/core/src/engine/state/take_over.rs";
const MEMORY: &str = "crates/core/src/memory_backend.rs";
const REFERENCE: &str = "crates/core/src/reference.rs";
const TRY_ACQUIRE_SQL: &str = "crates/mysql-unique/src/sql/try_acquire.sql";
const RENEW_SQL: &str = "crates/mysql-unique/src/sql/renew.sql";
const QUEUE_LUA: &str = "crates/redis/src/lua/queue.lua";
const ENTRY_LUA: &str = "crates/redis-single/src/lua/entry.lua";
const RENEW_LUA: &str = "crates/redis-single/src/lua/renew.lua";
const NEXT_EPOCH_LUA: &str = "crates/redis/src/lua/next_epoch.lua";
const FLEET_LUA: &str = "crates/redlock/src/lua/fleet.lua";
const REENTRANT_LUA: &str = "crates/redis-reentrant/src/lua/try_acquire.lua";
const RENEW_WRITERS_SQL: &str = "crates/mysql-rw/src/sql/renew_writers.sql";
const READER_SQL: &str = "crates/mysql-rw/src/sql/try_acquire_reader.sql";
const RENEWALS: &str = "crates/mysql/src/lease/statements.rs";
const SEMAPHORE: &str = "crates/core/src/semaphore.rs";
const ELECTION: &str = "crates/core/src/election.rs";
const HOLDERS_LUA: &str = "crates/redis-rw/src/lua/holders.lua";
const TRY_ACQUIRE_RW_LUA: &str = "crates/redis-rw/src/lua/try_acquire.lua";
const RENEW_RW_LUA: &str = "crates/redis-rw/src/lua/renew.lua";
const RELEASE_RW_LUA: &str = "crates/redis-rw/src/lua/release.lua";
const DOWNGRADE_RW_LUA: &str = "crates/redis-rw/src/lua/downgrade.lua";
const CLAIM_SQL: &str = "crates/postgres/src/sql/claim.sql";
const RENEW_PG_SQL: &str = "crates/postgres/src/sql/renew.sql";
const RELEASE_PG_SQL: &str = "crates/postgres/src/sql/release.sql";
const ETCD_LINE: &str = "crates/etcd/src/line.rs";
const FILE_GRANT: &str = "crates/file/src/grant.rs";

macro_rules! mutants {
    ($($backend:literal $(by $tests:literal)?: $wrong:literal in $file:expr, $right:literal => $instead:literal;)*) => {
        &[$(Mutant {
            backend: $backend,
            // The first of these: what is named, or else the suite.
            tests: [$($tests,)? "conformance"][0],
            wrong: $wrong,
            file: $file,
            right: $right,
            instead: $instead,
        }),*]
    };
}

pub(super) const MUTANTS: &[Mutant] = mutants! {
    "memory": "a lease never ends" in MEMORY,
        "clock), now.plus(claim.ttl))" => "clock), now.plus(claim.ttl * 1000))";
    "memory": "a lease ends when the store tidies up" in MEMORY,
        "key.end(|ends| ends <= now);" => "";
    "memory": "readers and writers do not exclude each other" in REFERENCE,
        "mode == Mode::Exclusive || lease.mode == Mode::Exclusive" => "mode == lease.mode && mode == Mode::Exclusive";
    "memory": "a claim that is repeated is told that it is busy" in REFERENCE,
        "if let Some(held) = self.of(claim.owner) {" => "if let Some(held) = self.of(claim.owner).filter(|_| false) {";
    "memory": "epochs outrun the clock" in MEMORY,
        "FencingToken::next_epoch(Some(newest), clock)" => "Some(newest + 1 + clock - clock)";
    "memory": "epochs are the clock alone" in MEMORY,
        "|newest| FencingToken::next_epoch(Some(newest), clock)" => "|_| Some(clock)";
    "memory": "a renewal gives half of the lease" in MEMORY,
        "now.plus(renewal.ttl)" => "now.plus(renewal.ttl / 2)";
    "memory": "a release frees all readers" in REFERENCE,
        "self.leases.retain(|lease| lease.owner != grant.owner);" => "let _ = grant.owner; self.leases.clear();";
    "memory": "who has expired is shown" in MEMORY,
        "leases.iter().filter(|lease| lease.ends > now).map(" => "leases.iter().map(";
    "memory": "a listing shows namespaces that begin alike" in MEMORY,
        "*namespace == self.namespace" => "namespace.starts_with(&*self.namespace)";
    "memory": "a release by force is not told as such" in REFERENCE,
        "self.forced.extend_from_slice(&ended);" => "";
    "memory" by "alone": "a renewal counts from when its answer came" in "crates/core/src/engine/state/renewals.rs",
        "lease.renewed(sent_at);" => "{ let _ = sent_at; lease.renewed(step.now); }";
    "memory" by "alone": "a deadline counts from when the grant came" in CLAIM,
        "step.ended(claim.member);" => "step.ended(claim.member); claim.sent_at = step.now;";
    "memory" by "permits": "a waiter for a permit waits for one slot" in SEMAPHORE,
        "slots.iter().map(|slot| self.locker.acquire(slot, options)).collect()" => "slots.iter().take(1).map(|slot| self.locker.acquire(slot, options)).collect()";
    "memory" by "permits": "a semaphore has a permit too many" in SEMAPHORE,
        "(0..permits).map(|slot|" => "(0..=permits).map(|slot|";
    "memory" by "permits": "those who want several permits gather them at the same time" in SEMAPHORE,
        "LockKey::new(format!(\"{}{MANY}\", key.as_str()))?" => "LockKey::new(format!(\"{}{MANY}{}\", key.as_str(), position(1 << 16)))?";
    "memory" by "permits": "a store that fails is a semaphore without permits" in SEMAPHORE,
        "silent.map_or(Ok(None), Err)" => "Ok(silent.and(None))";
    "memory" by "elections": "work goes on although another may lead" in ELECTION,
        "_ = leadership.lost() => Ended::Lost," => "_ = pending::<LossReason>() => Ended::Lost,";
    "memory" by "elections": "a candidate that shuts down keeps the lead" in ELECTION,
        "let _ = leadership.resign().await;\n                    return Ok(None);" => "std::mem::forget(leadership);\n                    return Ok(None);";
    "memory" by "elections": "a candidate that shuts down says so before it has resigned" in ELECTION,
        "let _ = leadership.resign().await;\n                    return Ok(None);" => "drop(leadership.resign());\n                    return Ok(None);";
    "memory" by "permits": "each of several permits is waited for as long as all of them" in "crates/core/src/patience.rs",
        "limit.saturating_sub(self.clock.now().since(self.since))" => "limit.saturating_sub(self.since.since(self.clock.now()))";
    "memory" by "elections": "an observer tells of no change" in ELECTION,
        "matches!(&told, Observed::Leader(before) if *before == leader)" => "matches!(&told, Observed::Leader(_))";
    "memory" by "lib": "a notification counts whatever epoch it has" in "crates/core/src/engine/state/pending.rs",
        "position.may_have_become(epoch) && now" => "(position.may_have_become(epoch) || true) && now";
    "memory" by "alone": "attempts on a store that is down do not back off" in "crates/core/src/engine/state/backoff.rs",
        "self.step = (self.step * 2).min(self.longest);" => "";

    "file": "nobody excludes anybody" in "crates/file/src/acquire.rs",
        "opened.try_lock(claim.mode, &files.lock)" => "opened.try_lock(Mode::Shared, &files.lock)";
    "file": "a claim that is repeated is told that it is busy" in "crates/file/src/acquire.rs",
        "repeated(store, claim) {" => "repeated(store, claim).filter(|_| false) {";
    "file": "tokens are the clock alone" in "crates/file/src/counter.rs",
        "FencingToken::next_epoch(Some(self.epoch), clock)" => "Some(clock)";
    "file": "tokens do not begin at the clock" in "crates/file/src/counter.rs",
        "FencingToken::next_epoch(Some(self.epoch), clock)" => "Some(clock.min(self.epoch % 1000 + 1))";
    "file": "tokens outrun the clock" in "crates/file/src/counter.rs",
        "FencingToken::next_epoch(Some(self.epoch), clock)" => "Some(clock.max(self.epoch + 100))";
    "file": "a release by force is not told as such" in FILE_GRANT,
        "mark == [lock_file::FORCED]" => "mark == [lock_file::NOBODY]";
    "file": "who was released by force believes on" in "crates/file/src/renew.rs",
        "ours.status()?" => "LeaseStatus::Held";
    "file": "who has released is shown" in FILE_GRANT,
        "matches!(self.record, RecordLocation::LockFile)" => "matches!(self.record, RecordLocation::ReaderFile(_))";
    "file": "one of several readers is shown" in "crates/file/src/admin.rs",
        "readers.iter().map(Record::to_holder).collect()" => "readers.iter().take(1).map(Record::to_holder).collect()";
    "file": "a listing has one page" in "crates/file/src/admin.rs",
        "page.next = Some(Cursor(stem.clone()));" => "";

    "redis-single": "the model says that a renewal shortens the lease" in REFERENCE,
        "lease.ends = lease.ends.or_later(ends);\n                LeaseStatus::Held\n            }\n            None => self.why_gone(grant),\n        }\n    }\n\n    /// Ends" => "lease.ends = ends;\n                LeaseStatus::Held\n            }\n            None => self.why_gone(grant),\n        }\n    }\n\n    /// Ends";
    "redis-single": "a claim that is repeated is told that it is busy" in "crates/redis-single/src/lua/try_acquire.lua",
        "string.sub(held, 1, 32) == owner" => "string.sub(held, 1, 31) == owner";
    "redis-single": "a grant lasts twice as long as asked" in ENTRY_LUA,
        "'PX', lease)" => "'PX', string.format('%d', lease * 2))";
    "redis-single": "a grant out of the line is told to nobody" in QUEUE_LUA,
        "is_told and refusal('PUBLISH', string.sub(inbox, 2), owner .. ' ' .. number .. ' ' .. lock)" => "nil";
    "redis-single": "a place that was given up is granted" in QUEUE_LUA,
        "if place then\n      unlink(" => "if false then\n      unlink(";
    "redis-single": "anybody renews" in RENEW_LUA,
        "not held or string.sub(held, 1, #grant) ~= grant" => "not held";
    "redis-single": "a renewal gives half of the lease" in "crates/redis/src/lua/prolong.lua",
        "call('PEXPIRE', lock, lease)" => "call('PEXPIRE', lock, math.floor(lease / 2))";
    "redis-single": "a batch renews only its first" in RENEW_LUA,
        "alone(renew, KEYS[#answers + 1], grant, lease)" => "#answers == 0 and renew(KEYS[1], grant, lease) or 'held'";
    "redis-single": "one that is gone ends its batch" in RENEW_LUA,
        "return all_held and 'held' or answers" => "for i in ipairs(answers) do answers[i] = all_held and 'held' or 'gone' end return answers";
    "redis-single": "anybody releases" in "crates/redis-single/src/lua/release.lua",
        "not held or string.sub(held, 1, 32) ~= owner" => "not held";
    "redis-single" by "epochs": "tokens are the clock alone" in NEXT_EPOCH_LUA,
        "stored and math.max(stored + 1, now) or most" => "now";
    "redis-single": "tokens do not begin at the clock" in NEXT_EPOCH_LUA,
        "stored and math.max(stored + 1, now) or most" => "(stored or 0) + 1";
    "redis-single" by "epochs": "a counter runs ahead of the clock" in NEXT_EPOCH_LUA,
        "return false, 'soon'" => "";
    "redis-single": "who waits is not written into the entry" in ENTRY_LUA,
        "held .. WAITED_FOR, 'KEEPTTL'" => "held, 'KEEPTTL'";
    "redis-single": "a batch releases only its first" in "crates/redis-single/src/lua/release.lua",
        "refusal('DEL', unpack(freed))" => "refusal('DEL', freed[1])";
    "redis-single" by "line": "a claim does not look for a queue" in "crates/redis-single/src/lua/try_acquire.lua",
        "if unseen == 0 then" => "if true then";
    "redis-single": "a release by force is not told as such" in "crates/redis/src/lua/force_release.lua",
        "redis.pcall('SET', forced, string.sub(held, 1, 32), 'PX', kept)" => "";

    "redis-single": "a late renewal shortens the lease" in "crates/redis/src/lua/prolong.lua",
        "if left < tonumber(lease) then" => "if true then";
    "redis-single": "a renewal brings back what is gone" in RENEW_LUA,
        "return 'gone'" => "return redis.pcall('SET', lock, grant .. '{}', 'PX', lease, 'NX') and 'held'";
    "redis-single" by "epochs": "a counter is raised by another command than the grant, and too late" in "crates/redis-single/src/lua/try_acquire.lua",
        "fence, 'epoch ' .. number" => "fence, last";
    "redis-single" by "topologies": "what WAIT answers is not looked at, as on another connection" in "crates/redis/src/client/confirmation.rs",
        "if confirmed >= u64::from(self.replicas)" => "if confirmed < u64::MAX";
    "redis" by "store": "replicas confirm a grant that their server does not have" in "crates/redis/src/client/confirmation.rs",
        "if renewed.words() != [\"held\"]" => "if renewed.words().is_empty()";

    "redis-reentrant": "sessions do not exclude each other" in REENTRANT_LUA,
        "if owner ~= session or (lost" => "if (lost";
    "redis-reentrant": "a session joins what it has lost" in REENTRANT_LUA,
        " or (lost ~= '' and tonumber(epoch) <= tonumber(lost)) then" => " then";
    "redis-reentrant": "a level that was given back is counted again" in "crates/redis-reentrant/src/lua/release.lua",
        "or not held[3] or" => "or";
    "redis-reentrant": "a further level shortens the lease" in REENTRANT_LUA,
        "left < tonumber(lease) and refusal('PEXPIRE', lock, lease)" => "refusal('PEXPIRE', lock, lease)";
    "redis-reentrant": "the first release frees all levels" in "crates/redis-reentrant/src/lua/release.lua",
        "if call('HLEN', lock) > 4 then" => "if false then";

    "redlock": "anybody releases" in FLEET_LUA,
        "held and string.find(held, owner, 1, true) == 1" => "held";
    "redlock": "a renewal brings back what is gone" in "crates/redlock/src/lua/renew.lua",
        "return redis.pcall('GET', forced) == owner and 'forced' or 'gone'" => "return redis.pcall('SET', lock, owner .. ' - {}', 'PX', lease, 'NX') and 'held'";
    "redlock" by "lib": "half of the nodes are a majority" in "crates/redlock/src/majority.rs",
        "nodes / 2 + 1" => "nodes.div_ceil(2)";
    "redlock" by "model": "a number is written that is not above every other" in "crates/redlock/src/numbers.rs",
        "told.number.unwrap_or(told.floor + 1)" => "told.number.unwrap_or(told.floor)";
    "redlock" by "tokens": "a node confirms a number that it gave before" in "crates/redlock/src/lua/confirm.lua",
        "if floor >= tonumber(number) then" => "if floor > tonumber(number) then";
    "redlock" by "contenders": "a grant that comes late is not given back" in "crates/redlock/src/batch.rs",
        "if attempt.granted_late(index) {" => "if attempt.granted_late(index) && index > 99 {";

    "mysql-unique": "a claim takes the key from its owner" in TRY_ACQUIRE_SQL,
        "owner = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), :owner, owner)" => "owner = :owner";
    "mysql-unique": "a claim that is repeated prolongs" in TRY_ACQUIRE_SQL,
        "expires_at = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at"
        => "expires_at = IF(owner = :owner OR expires_at <= UTC_TIMESTAMP(6) AND acquired_at";
    "mysql-unique" by "shared": "tokens are the clock alone" in TRY_ACQUIRE_SQL,
        "LAST_INSERT_ID(GREATEST(epoch + 1, {clock}))" => "LAST_INSERT_ID({clock})";
    "mysql-unique" by "shared": "tokens outrun the clock" in TRY_ACQUIRE_SQL,
        " AND epoch + 1 NOT BETWEEN {clock} + 17 AND {clock} + 16016" => "";
    "mysql-unique": "labels of the first holder stay" in TRY_ACQUIRE_SQL,
        "label = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), :label, label)" => "label = label";
    "mysql-unique": "a renewal brings back what has expired" in RENEW_SQL,
        " AND expires_at > UTC_TIMESTAMP(6)" => "";
    "mysql-unique": "a renewal gives half of the lease" in RENEW_SQL,
        "UTC_TIMESTAMP(6) + INTERVAL {micros of CONCAT(name, owner)} MICROSECOND)" => "UTC_TIMESTAMP(6) + INTERVAL ({micros of CONCAT(name, owner)}) DIV 2 MICROSECOND)";
    "mysql-unique": "a late renewal shortens the lease" in RENEW_SQL,
        "GREATEST(expires_at," => "GREATEST(UTC_TIMESTAMP(6),";
    "mysql-unique" by "shared": "a lease ends by the local time of the session" in TRY_ACQUIRE_SQL,
        "    UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, expires_at)" => "    NOW(6) + INTERVAL :ttl MICROSECOND, expires_at)";
    "mysql-unique" by "shared": "keys are text" in "crates/mysql/src/schema/table.rs",
        "varbinary({length})" => "varchar({length})";
    "mysql-unique": "the number of changed rows is believed" in RENEWALS,
        "if reply.affected == keys.len() as u64 {" => "if reply.affected > 0 {";
    "mysql-unique" by "cost": "a renewal reads the whole table" in RENEW_SQL,
        "FORCE INDEX (PRIMARY)" => "IGNORE INDEX (PRIMARY)";
    "memory" by "lib": "a batch takes its rows in any order" in "crates/core/src/group_commit.rs",
        "O::row(&one.request).cmp(&O::row(&other.request))" => "O::row(&one.request).map(|row| row.len() % 2).cmp(&O::row(&other.request).map(|row| row.len() % 2))";
    "mysql-unique": "anybody releases" in "crates/mysql-unique/src/sql/release.sql",
        "owner = :owner" => "(owner = :owner OR TRUE)";
    "mysql-unique": "who has expired is shown" in "crates/mysql-unique/src/sql/inspect.sql",
        " AND expires_at > UTC_TIMESTAMP(6)" => "";
    "mysql-unique": "who has expired is listed" in "crates/mysql-unique/src/sql/list.sql",
        " AND expires_at > UTC_TIMESTAMP(6)" => "";
    "mysql-unique": "a release by force is not told as such" in "crates/mysql-unique/src/sql/force_release.sql",
        "forced = owner" => "forced = NULL";

    "mysql-rw": "anybody releases" in "crates/mysql-rw/src/sql/release_writer.sql",
        "writer = :owner AND writer_expires_at" => "writer_expires_at";
    "mysql-rw": "a renewal brings back what has expired" in RENEW_WRITERS_SQL,
        " AND writer_expires_at > UTC_TIMESTAMP(6)" => "";
    "mysql-rw": "a late renewal shortens the lease" in RENEW_WRITERS_SQL,
        "GREATEST(writer_expires_at," => "GREATEST(UTC_TIMESTAMP(6),";
    "mysql-rw": "a reader comes in beside a writer" in "crates/mysql-rw/src/sql/draw_epochs.sql",
        "WHEN writer IS NOT NULL AND writer_expires_at > UTC_TIMESTAMP(6) THEN 0" => "WHEN FALSE THEN 0";
    "mysql-rw" by "readers": "a writer that was released by force becomes a reader" in "crates/mysql-rw/src/sql/downgrade.sql",
        "l.writer = :writer AND " => "";
    "mysql-rw" by "admission": "a reader does not keep the row of its key in place" in READER_SQL,
        "LOCK IN SHARE MODE" => "";
    "mysql-rw" by "admission": "a reader has an epoch from before a writer" in READER_SQL,
        " AND l.written < :epoch" => "";
    "mysql-rw" by "readers": "a writer does not wait until the readers are gone" in "crates/mysql-rw/src/sql/count_readers.sql",
        "COUNT(IF(r.forced IS NULL, r.name, NULL))" => "0 * COUNT(IF(r.forced IS NULL, r.name, NULL))";

    "redis-rw": "a reader comes in beside a writer" in HOLDERS_LUA,
        "if latest or mode == 'r' or not writer then\n    return latest, writer" => "if latest or mode == 'r' or not writer then\n    return mode == 'w' and latest or nil, writer";
    "redis-rw": "a writer does not see readers" in HOLDERS_LUA,
        "return read_until(lock), writer" => "return nil, writer";
    "redis-rw": "a writer does not see the reader that asked last" in HOLDERS_LUA,
        "for i, owner in ipairs(listed) do\n    local ends = live(entries[i])" => "for i, owner in ipairs(listed) do\n    local ends = i > 1 and live(entries[i])";
    "redis-rw" by "readers": "a writer comes in where the list of readers is lost" in HOLDERS_LUA,
        "local all = call('HGETALL', lock)" => "local all = {}";
    "redis-rw": "readers that come later overtake a writer that waits" in TRY_ACQUIRE_RW_LUA,
        "if there > (known[1] and 1 or 0) then" => "if mode == 'w' and there > (known[1] and 1 or 0) then";
    "redis-rw": "a reader whose lease is over holds the key" in HOLDERS_LUA,
        "if ends and tonumber(ends) > clock() then" => "if ends then";
    "redis-rw": "a renewal brings back what has ended" in RENEW_RW_LUA,
        "if number ~= epoch then\n    return 'gone'\n  end" => "if number ~= epoch then\n    field, ends, number, metadata = 'writer', 0, epoch, '}'\n  end";
    "redis-rw": "anybody releases a writer" in RELEASE_RW_LUA,
        "if string.match(known[1] or '', '^%d+ (%x+) ') == owner then" => "if string.match(known[1] or '', '^%d+ (%x+) ') then";
    "redis-rw": "a reader has the token of the one before" in HOLDERS_LUA,
        "local entry = entry_of(ends, owner, number," => "number = mode == 'r' and number - number % 16000 or number\n  local entry = entry_of(ends, owner, number,";
    "redis-rw": "a writer that becomes a reader keeps its token" in DOWNGRADE_RW_LUA,
        "local entry = entry_of(clock() + lease, owner, next_number, since() .. metadata)" => "next_number = epoch\n  local entry = entry_of(clock() + lease, owner, next_number, since() .. metadata)";
    "redis-rw": "a late renewal shortens the lease" in RENEW_RW_LUA,
        "local longer = math.max(ends, clock() + lease)" => "local longer = clock() + lease";
    "redis-rw": "a release by force is not told as such" in "crates/redis-rw/src/lua/force_release.lua",
        "table.concat(owners, ' ')" => "''";
    "redis-rw": "a release leaves those who wait asleep" in RELEASE_RW_LUA,
        "local unserved = serve_waiters(lock, fence, line)" => "local unserved";

    "postgres": "a reader comes in beside a writer" in CLAIM_SQL,
        "    IF l.owner IS NOT NULL THEN\n      until := l.expires_at;" => "    IF l.owner IS NOT NULL AND NOT shared[i] THEN\n      until := l.expires_at;";
    "postgres": "a writer comes in beside readers" in CLAIM_SQL,
        "SELECT max(r.expires_at) INTO until FROM" => "SELECT max(r.expires_at) - interval '1 day' INTO until FROM";
    "postgres": "tokens stay the same" in CLAIM_SQL,
        "l.epoch := greatest(l.epoch + 1, clock);" => "l.epoch := greatest(l.epoch, 1);";
    "postgres": "anybody releases a writer" in RELEASE_PG_SQL,
        "IF l.owner = owners[i] AND l.expires_at > moment THEN" => "IF l.expires_at > moment THEN";
    "postgres": "a writer that waits no more keeps others out" in RELEASE_PG_SQL,
        "IF substr(l.waiting, 17) = owners[i] THEN" => "IF false THEN";
    "postgres": "a renewal brings a writer back whose lease has ended" in RENEW_PG_SQL,
        "WHERE l.name = g.name AND l.owner = g.owner AND l.expires_at > moment;" => "WHERE l.name = g.name AND l.owner = g.owner;";
    "postgres": "a late renewal shortens the lease" in RENEW_PG_SQL,
        "UPDATE {schema}.locks AS l SET expires_at = greatest(l.expires_at," => "UPDATE {schema}.locks AS l SET expires_at = greatest(moment,";
    "postgres": "a release by force is not told as such" in "crates/postgres/src/sql/force_release.sql",
        "      l.forced := l.owner;\n" => "";
    "postgres": "a detached lock is attached by all who have the text" in "crates/postgres/src/sql/take_over.sql",
        "WHERE l.name = key AND l.owner IN (old_owner, new_owner) AND l.epoch = its_epoch" => "WHERE l.name = key AND l.epoch = its_epoch";

    "etcd": "a reader that waits comes in beside a writer" in ETCD_LINE,
        "other.position < entry.position && (other.mode == Mode::Exclusive || entry.mode == Mode::Exclusive)" => "other.position < entry.position && entry.mode == Mode::Exclusive";
    "etcd": "a writer does not wait for the readers before it" in ETCD_LINE,
        "other.position < entry.position && (other.mode == Mode::Exclusive || entry.mode == Mode::Exclusive)" => "other.position < entry.position && other.mode == Mode::Exclusive";
    "etcd": "a downgrade keeps the token of the writer" in ETCD_LINE,
        "base.epoch(self.position).saturating_add(u64::from(self.text.downgraded))" => "base.epoch(self.position)";
    "etcd": "a writer that becomes a reader goes to the end of the line" in ETCD_LINE,
        "let position = if text.position > 0 { text.position } else { kv.create_revision };" => "let position = kv.create_revision;";
    "etcd": "a renewal does not prolong the lease" in "crates/etcd/src/renew.rs",
        "let alive = if kept.is_empty() { Vec::new() } else { store.keep_alive(RENEW, &kept).await? };" => "let alive = vec![true; kept.len()];";
    "etcd" by "late": "a renewal that was given up replaces a lease that was renewed since" in "crates/etcd/src/store.rs",
        "locked(&self.0.unanswered).contains(owner)" => "locked(&self.0.unanswered).contains(owner) && false";
    "etcd" by "late": "a forced release in two rounds names those of the last" in "crates/etcd/src/admin.rs",
        "        let mut all = true;" => "        released.holders.clear();\n        let mut all = true;";

    "engine" by "search": "a grant that no waiter wants stays" in STATE_GRANT,
        "return self.release(step, claim.member, grant, ttl, claim.unanswered, None);\n        };" => "return;\n        };";
    "engine" by "search": "of two leases of which one excludes the other, both stay" in STATE_GRANT,
        "let exclusive = lease.is_exclusive() || mode == Mode::Exclusive;" => "let exclusive = false;";
    "engine" by "search": "a waiter that leaves keeps what it has in the store" in CLAIM,
        "if claim.is_repeated() {\n            let grant" => "if false {\n            let grant";
    "engine" by "search": "a claim has the owner id of a lease before it" in CLAIM,
        "claim.sent_at = step.now;" =>
        "claim.owner = self.store.releases.last().map_or(claim.owner, |release| release.grant.owner); claim.sent_at = step.now;";
    "engine" by "search": "a claim that is sent again counts as new" in CLAIM,
        "if !claim.is_repeated() {\n            claim.join_limit" => "if true {\n            claim.join_limit";
    "engine" by "search": "an offer to a caller that is gone stays" in STATE_KEY,
        "self.release_guard(step, &offer.guard, None);" => "drop(offer);";
    "engine" by "search": "a claim overtakes this process's own release" in STATE_KEY,
        "release.is_in_the_way(waiter.mode) && (of_session || !release.has_failed)" => "false";
    "engine" by "search": "a session's next lease begins under a guard that is lost" in STATE_KEY,
        "if lease.terms.member == member && lease.is_reentrant() =>" => "if false =>";
    "engine" by "search": "the next guard gets the whole lease" in STATE_LOCAL_HANDOFF,
        "let number = before.number + 1;" =>
        "let ttl = self.leases[index].terms.ttl; self.leases[index].prolong(step.now, ttl); step.out.push(Action::Limit(self.leases[index].cell.clone(), self.leases[index].limit())); let number = before.number + 1;";
    "engine" by "search": "a hand-off does not count" in STATE_LOCAL_HANDOFF,
        "before.number + 1" => "before.number";
    "engine" by "search": "a shared lease is handed off" in STATE_LOCAL_HANDOFF,
        "&& lease.is_exclusive()" => "";
    "engine" by "search": "hand-offs have no bound" in STATE_LOCAL_HANDOFF,
        "let used_up = lease.guards[entry].number >= traits.handoffs;" => "let used_up = false;";
    "engine" by "search": "after the bound, other processes do not go first" in STATE_LOCAL_HANDOFF,
        "if !traits.queues && !self.queue.waiters.is_empty() {" => "if false {";
    "engine" by "search": "a reader shares a grant that was asked for before it came" in STATE_LOCAL_HANDOFF,
        "&& waiter.id.0 < claim.join_limit" => "";
    "engine" by "search": "a reader gets a grant that was asked for before it came" in STATE_PENDING,
        "let before = waiter.id.0 < self.join_limit;" => "let before = true;";
    "engine" by "search": "a lease counts from the last request that may have begun it" in STATE_PENDING,
        "(!self.unanswered).then(" => "true.then(";
    "engine" by "search": "an attached lease keeps its owner" in STATE_TAKE_OVER,
        "let owner = step.random.owner(step.now);" => "let owner = grant.owner;";
    "engine" by "search": "a writer that was not downgraded stays" in STATE_TAKE_OVER,
        "self.release(step, pending.member, pending.old.clone(), ttl, may_be_late, None);" => "let _ = (ttl, may_be_late);";
    "engine" by "search": "a notification during a claim is judged without its answer" in STATE_NOTIFICATIONS,
        "if let Phase::Sent { message, .. } = &mut claim.phase {" => "if false && let Phase::Sent { message, .. } = &mut claim.phase {";
    "engine" by "search": "a guard that is over ends another" in STATE_RELEASE,
        "let Some(entry) = found(lease) else" => "let Some(entry) = found(lease).or((!lease.guards.is_empty()).then_some(0)) else";
    "engine" by "search": "guards do not hear of the end of their lease" in STATE_RELEASE,
        "step.out.push(Action::End { cell, key: self.name.clone(), end, held_for });" => "let _ = (cell, held_for);";
    "engine" by "search": "a release by force ends what it did not evict" in STATE_RELEASE,
        "for lease in leases {\n            self.end(step, *lease, End::Lost(LossReason::ForceReleased));" =>
        "let all: Vec<_> = self.leases.iter().map(|lease| lease.id).collect(); for lease in &all {\n            self.end(step, *lease, End::Lost(LossReason::ForceReleased));";
    "engine" by "search": "a closed engine makes guards" in STATE_RELEASE,
        "|waiter: &Waiter<W>| waiter.member == member;" => "|waiter: &Waiter<W>| false;";
    "engine" by "search": "a lease that ran out is not lost first" in STATE_RELEASE,
        "while let Some(lease) = self.leases.iter().find(over) {" => "while let Some(lease) = self.leases.iter().find(over).filter(|_| false) {";
    "engine" by "search": "a lease that is almost over is handed off" in STATE_LEASE,
        "&& spare < self.limit()" => "";
    "engine" by "search": "a lease is handed off while a renewal has no answer" in STATE_LEASE,
        "self.limit() && !self.unanswered" => "self.limit()";
    "engine" by "search": "a late answer shortens a lease" in STATE_LEASE,
        "self.deadline = self.deadline.max(lease_deadline(sent_at, ttl));" => "self.deadline = lease_deadline(sent_at, ttl);";
};

//! The messages of etcd's API (version 3) that are used here, and no more of them than is used. They are written by hand, so that
//! nobody who compiles this crate needs a protobuf compiler.

use prost::{Message, Oneof};

pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";
pub(crate) const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
pub(crate) const LEASE_REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
pub(crate) const LEASE_KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
pub(crate) const LEASE_TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
pub(crate) const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
pub(crate) const MEMBER_LIST: &str = "/etcdserverpb.Cluster/MemberList";
pub(crate) const USER_GET: &str = "/etcdserverpb.Auth/UserGet";
pub(crate) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

/// Messages, each with its fields: the name in Rust, its type, and how the protocol has it.
macro_rules! messages {
    ($($(#[$about:meta])* $message:ident {
        $($(#[$note:meta])* $field:ident: $kind:ty = [$($how:tt)*]),* $(,)?
    })*) => {
        $(
            $(#[$about])*
            #[derive(Clone, PartialEq, Message)]
            pub(crate) struct $message {
                $($(#[$note])* #[prost($($how)*)] pub(crate) $field: $kind,)*
            }
        )*
    };
}

messages! {
    Header { revision: i64 = [int64, tag = "3"] }

    KeyValue {
        key: Vec<u8> = [bytes = "vec", tag = "1"],
        create_revision: i64 = [int64, tag = "2"],
        mod_revision: i64 = [int64, tag = "3"],
        value: Vec<u8> = [bytes = "vec", tag = "5"],
        lease: i64 = [int64, tag = "6"],
    }

    RangeRequest {
        key: Vec<u8> = [bytes = "vec", tag = "1"],
        range_end: Vec<u8> = [bytes = "vec", tag = "2"],
        limit: i64 = [int64, tag = "3"],
        /// What was there at this revision. 0: what is there now.
        revision: i64 = [int64, tag = "4"],
    }

    RangeResponse {
        header: Option<Header> = [message, optional, tag = "1"],
        kvs: Vec<KeyValue> = [message, repeated, tag = "2"],
        more: bool = [bool, tag = "3"],
    }

    PutRequest {
        key: Vec<u8> = [bytes = "vec", tag = "1"],
        value: Vec<u8> = [bytes = "vec", tag = "2"],
        lease: i64 = [int64, tag = "3"],
    }

    DeleteRequest { key: Vec<u8> = [bytes = "vec", tag = "1"] }

    Operation { request: Option<Request> = [oneof = "Request", tags = "1, 2, 3, 4"] }

    Outcome { response: Option<Response> = [oneof = "Response", tags = "1, 4"] }

    /// That the field `target` of a key, or of each key of a range, equals a value. A key that is not there has 0 in each.
    Compare {
        /// Only `EQUAL` (0), `GREATER` (1) and `LESS` (2) are used.
        result: i32 = [int32, tag = "1"],
        target: i32 = [int32, tag = "2"],
        key: Vec<u8> = [bytes = "vec", tag = "3"],
        union: Option<Target> = [oneof = "Target", tags = "5, 6, 7"],
        range_end: Vec<u8> = [bytes = "vec", tag = "64"],
    }

    TxnRequest {
        compare: Vec<Compare> = [message, repeated, tag = "1"],
        success: Vec<Operation> = [message, repeated, tag = "2"],
        failure: Vec<Operation> = [message, repeated, tag = "3"],
    }

    TxnResponse {
        header: Option<Header> = [message, optional, tag = "1"],
        succeeded: bool = [bool, tag = "2"],
        responses: Vec<Outcome> = [message, repeated, tag = "3"],
    }

    /// A request about one lease: `LeaseRevoke`, `LeaseKeepAlive`, `LeaseTimeToLive`.
    LeaseRequest { id: i64 = [int64, tag = "1"] }

    LeaseGrantRequest { ttl: i64 = [int64, tag = "1"] }

    /// The answer to every request about a lease. `LeaseRevoke` fills in neither.
    LeaseResponse {
        id: i64 = [int64, tag = "2"],
        /// In seconds. 0 or less: there is no such lease.
        ttl: i64 = [int64, tag = "3"],
    }

    WatchRequest { create: Option<WatchCreate> = [message, optional, tag = "1"] }

    WatchCreate {
        key: Vec<u8> = [bytes = "vec", tag = "1"],
        range_end: Vec<u8> = [bytes = "vec", tag = "2"],
        start_revision: i64 = [int64, tag = "3"],
        /// `NOPUT` is 0.
        filters: Vec<i32> = [int32, repeated, tag = "5"],
    }

    WatchResponse {
        header: Option<Header> = [message, optional, tag = "1"],
        canceled: bool = [bool, tag = "4"],
        /// Not 0: what happened since the start revision is not kept any more.
        compact_revision: i64 = [int64, tag = "5"],
        events: Vec<Event> = [message, repeated, tag = "11"],
    }

    /// That a key was deleted: nothing else is watched for.
    Event {}

    AuthenticateRequest {
        name: String = [string, tag = "1"],
        password: String = [string, tag = "2"],
    }

    AuthenticateResponse { token: String = [string, tag = "2"] }

    StatusResponse {
        version: String = [string, tag = "2"],
        /// Of the database, in bytes.
        size: i64 = [int64, tag = "3"],
        /// To what it may grow. 0: the server is older than 3.6, and does not tell.
        quota: i64 = [int64, tag = "12"],
    }

    MemberListResponse { members: Vec<Member> = [message, repeated, tag = "2"] }

    Member {
        id: u64 = [uint64, tag = "1"],
        /// Empty: it was never started.
        name: String = [string, tag = "2"],
        /// Whether it has no vote.
        learner: bool = [bool, tag = "5"],
    }

    AlarmResponse { alarms: Vec<AlarmMember> = [message, repeated, tag = "2"] }

    AlarmMember {
        member: u64 = [uint64, tag = "1"],
        /// `NOSPACE` is 1, `CORRUPT` is 2.
        alarm: i32 = [int32, tag = "2"],
    }

    UserGetRequest { name: String = [string, tag = "1"] }

    UserGetResponse { roles: Vec<String> = [string, repeated, tag = "2"] }
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Request {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRequest),
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
}

/// Of the outcomes of a transaction only what was read matters, and the transactions inside of it.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Response {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "4")]
    Txn(TxnResponse),
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Target {
    #[prost(int64, tag = "5")]
    Created(i64),
    #[prost(int64, tag = "6")]
    Modified(i64),
    #[prost(bytes = "vec", tag = "7")]
    Value(Vec<u8>),
}

impl RangeRequest {
    /// So many keys of a range at most.
    pub(crate) fn all((key, range_end): Range, limit: i64) -> Self {
        Self { key, range_end, limit, revision: 0 }
    }
}

impl Compare {
    /// That there is no key in this range, which is one key if it has no end.
    pub(crate) fn absent((key, range_end): Range) -> Self {
        Self { result: 0, target: 1, key, union: Some(Target::Created(0)), range_end }
    }

    /// That there is this key.
    pub(crate) fn present(key: &[u8]) -> Self {
        Self { result: 1, ..Self::absent((key.to_vec(), Vec::new())) }
    }

    /// That the key has a value that begins with this, and goes on.
    pub(crate) fn begins(key: &[u8], value: &[u8]) -> [Self; 2] {
        let (from, to) = starting_with(value);
        [Self { result: 1, ..Self::value(key, &from) }, Self { result: 2, ..Self::value(key, &to) }]
    }

    /// That the key was last written by this revision.
    pub(crate) fn unchanged(key: &[u8], revision: i64) -> Self {
        let union = Some(Target::Modified(revision));
        Self { result: 0, target: 2, key: key.to_vec(), union, range_end: Vec::new() }
    }

    /// That the key has this value.
    pub(crate) fn value(key: &[u8], value: &[u8]) -> Self {
        let union = Some(Target::Value(value.to_vec()));
        Self { result: 0, target: 3, key: key.to_vec(), union, range_end: Vec::new() }
    }
}

/// From the first key, inclusive, to the second, exclusive. Only the first one if the second is empty.
pub(crate) type Range = (Vec<u8>, Vec<u8>);

/// All keys that start with `prefix`, which does not end with the byte 0xFF.
pub(crate) fn starting_with(prefix: impl Into<Vec<u8>>) -> Range {
    let prefix = prefix.into();
    let mut end = prefix.clone();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    (prefix, end)
}

impl Operation {
    pub(crate) fn get((key, range_end): Range) -> Self {
        Self { request: Some(Request::Range(RangeRequest { key, range_end, ..RangeRequest::default() })) }
    }

    pub(crate) fn get_one(key: &[u8]) -> Self {
        Self::get((key.to_vec(), Vec::new()))
    }

    pub(crate) fn put(key: &[u8], value: Vec<u8>, lease: i64) -> Self {
        Self { request: Some(Request::Put(PutRequest { key: key.to_vec(), value, lease })) }
    }

    pub(crate) fn txn(txn: TxnRequest) -> Self {
        Self { request: Some(Request::Txn(txn)) }
    }

    pub(crate) fn delete(key: &[u8]) -> Self {
        Self { request: Some(Request::Delete(DeleteRequest { key: key.to_vec() })) }
    }
}

impl TxnResponse {
    /// What was read, in the order of the reads.
    pub(crate) fn reads(self) -> Vec<Vec<KeyValue>> {
        let read = |outcome: Outcome| match outcome.response {
            Some(Response::Range(range)) => Some(range.kvs),
            _ => None,
        };
        self.responses.into_iter().filter_map(read).collect()
    }

    /// What became of the transactions inside of this one, in their order.
    pub(crate) fn inner(self) -> Vec<Self> {
        let inner = |outcome: Outcome| match outcome.response {
            Some(Response::Txn(inner)) => Some(inner),
            _ => None,
        };
        self.responses.into_iter().filter_map(inner).collect()
    }
}

//! What clients and the runner say to each other: lines of JSON, a request and its reply.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a client process is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// By name.
    pub(crate) setup: String,
    pub(crate) url: String,
    /// The number of this process. No two processes of a run share one.
    pub(crate) client: u32,
    pub(crate) seed: u64,
    /// The port of the runner's resource.
    pub(crate) resource: u16,
    /// Where the history goes.
    pub(crate) folder: PathBuf,
    pub(crate) ttl_ms: u64,
    pub(crate) tasks: u32,
    /// Very many keys and waits, instead of the usual work.
    pub(crate) soak: Option<Soak>,
}

/// How much a soak is to do, and for how long at most.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Soak {
    pub(crate) keys: u64,
    pub(crate) cancelled: u64,
    pub(crate) seconds: u64,
}

/// What a process has of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Footprint {
    /// Bytes that it has allocated and not freed.
    pub(crate) heap: u64,
    /// Bytes that are in the machine's memory.
    pub(crate) resident: u64,
    pub(crate) descriptors: u64,
    pub(crate) tasks: u64,
}

/// What a client asks of the runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Writes to a register. With a token, it is refused if a larger one was seen.
    Write { register: String, token: Option<u64>, value: u64 },
    /// Reads a register. With a token, it refuses smaller ones from then on.
    Read { register: String, token: Option<u64> },
    /// A detached lock, for another client.
    Offer { client: u32, text: String },
    /// Asks for a detached lock of another client. Two are told of each.
    Take { client: u32 },
    /// Something that the client does to itself has had an effect.
    Proof { fault: String },
    /// What the client uses after so much more work.
    Footprint { footprint: Footprint, keys: u64, cancelled: u64 },
    /// Whether the runner has looked at the store since the last footprint.
    Looked {},
    /// Something is wrong that no line of the history says.
    Complaint { text: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Reply {
    Accepted { previous: Option<u64> },
    Refused,
    Value { value: Option<u64>, token: Option<u64> },
    Taken { text: String },
    Looked,
    Nothing,
}

//! Faults that several setups are tested with.

use crate::fault::Fault;

/// What is done to the way between clients and a server.
pub(super) const ON_THE_WAY: &[Fault] = &[
    Fault::CutConnections,
    Fault::RefuseConnections,
    Fault::BlackHole,
    Fault::LoseRequests,
    Fault::LoseReplies,
    Fault::LoseOneReply,
    Fault::TearReply,
    Fault::Delay,
    Fault::LateThenSilent,
];

/// What is done to every server that stands alone.
pub(super) const TO_A_SERVER: &[Fault] = &[
    Fault::StopServer,
    Fault::RestartServer,
    Fault::KillConnections,
    Fault::NoConnectionsLeft,
    Fault::ForceRelease,
    Fault::ServerClockAhead,
    Fault::ServerClockBack,
    Fault::SlowDisk,
];

/// What is done to a primary and its replicas.
pub(super) const TO_A_SENTINEL_SET: &[Fault] =
    &[Fault::FailOver, Fault::FallBehind, Fault::StopServer, Fault::RestartServer, Fault::KillConnections];

pub(super) const TO_REDIS: &[Fault] = &[Fault::FlushScripts, Fault::MemoryFull, Fault::EmptyServer, Fault::DiskFull];
pub(super) const TO_A_DATABASE: &[Fault] = &[Fault::LockedTable, Fault::ReadOnly, Fault::DiskFull];

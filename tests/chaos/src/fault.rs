//! The kinds of faults: of clients, of the network and of servers.

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fault {
    KillClient,
    StopClient,
    ClientClockAhead,
    ClientClockBack,
    CutConnections,
    RefuseConnections,
    BlackHole,
    LoseRequests,
    LoseReplies,
    LoseOneReply,
    TearReply,
    Delay,
    LateThenSilent,
    StopServer,
    StopTwoServers,
    StopAgent,
    RestartAgent,
    StopLeader,
    RestartServer,
    RestartLeader,
    RestartAllServers,
    EmptyServer,
    ReplaceServer,
    ServerClockAhead,
    ServerClockBack,
    SlowDisk,
    KillConnections,
    NoConnectionsLeft,
    FlushScripts,
    MemoryFull,
    DiskFull,
    RemoveLockFile,
    FailOver,
    FallBehind,
    ClusterFailOver,
    MoveSlot,
    SwitchOver,
    MoveLeader,
    PartLeader,
    Compact,
    SpaceUsedUp,
    LockedTable,
    ReadOnly,
    ForceRelease,
}

/// What is done to the clients of every store.
pub(crate) const TO_CLIENTS: &[Fault] =
    &[Fault::KillClient, Fault::StopClient, Fault::ClientClockAhead, Fault::ClientClockBack];

/// What is done to the way between clients and a server.
pub(crate) const ON_THE_WAY: &[Fault] = &[
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

/// What a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hits {
    Client,
    Link,
    Server,
    Key,
}

impl Fault {
    /// The name in the history, in the schedule, and in the report; and what happens, for people.
    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::KillClient => ("kill_client", "a client is killed (SIGKILL)"),
            Self::StopClient => {
                ("stop_client", "a client is stopped (SIGSTOP), mostly for longer than a lease, and goes on")
            }
            Self::ClientClockAhead => ("client_clock_ahead", "a client's wall clock jumps ahead by an hour"),
            Self::ClientClockBack => ("client_clock_back", "a client's wall clock is set back by an hour"),
            Self::CutConnections => ("cut_connections", "connections are cut"),
            Self::RefuseConnections => ("refuse_connections", "connections are cut and refused"),
            Self::BlackHole => ("black_hole", "nothing gets through, and connections stay open"),
            Self::LoseRequests => ("lose_requests", "requests are lost, and replies are not"),
            Self::LoseReplies => ("lose_replies", "replies are lost, and requests are not"),
            Self::LoseOneReply => ("lose_one_reply", "single replies are lost, with their connection"),
            Self::TearReply => ("tear_reply", "connections break in the middle of a reply"),
            Self::Delay => ("delay", "everything is late, by up to 0.3 s each way"),
            Self::LateThenSilent => {
                ("late_then_silent", "replies are late by 0.6 s, and then nothing gets through for longer than a lease")
            }
            Self::StopServer => ("stop_server", "a server is stopped (SIGSTOP), and goes on"),
            Self::StopTwoServers => ("stop_two_servers", "two servers are stopped (SIGSTOP) at a time, and go on"),
            Self::StopAgent => ("stop_agent", "an agent is stopped (SIGSTOP), and goes on"),
            Self::RestartAgent => ("restart_agent", "an agent is killed (SIGKILL), and another takes its place"),
            Self::StopLeader => ("stop_leader", "the leader of the servers is stopped (SIGSTOP), and goes on"),
            Self::RestartServer => ("restart_server", "a server is killed (SIGKILL), and starts again with its data"),
            Self::RestartLeader => {
                ("restart_leader", "the leader of the servers is killed (SIGKILL), and starts again with its data")
            }
            Self::RestartAllServers => {
                ("restart_all_servers", "all servers are killed (SIGKILL) at a time, and start again with their data")
            }
            Self::EmptyServer => ("empty_server", "a server is killed (SIGKILL), and starts again without its data"),
            Self::ReplaceServer => (
                "replace_server",
                "a server is killed (SIGKILL) and loses its data, and an operator has a new member take its place",
            ),
            Self::ServerClockAhead => ("server_clock_ahead", "a server's clock jumps ahead by seconds"),
            Self::ServerClockBack => ("server_clock_back", "a server's clock is set back by seconds"),
            Self::SlowDisk => ("slow_disk", "each fsync of a server takes up to 0.1 s longer"),
            Self::KillConnections => ("kill_connections", "a server ends all connections"),
            Self::NoConnectionsLeft => ("no_connections_left", "a server lets no more connections in"),
            Self::FlushScripts => ("flush_scripts", "a server forgets its scripts"),
            Self::MemoryFull => ("memory_full", "a server has no memory left"),
            Self::DiskFull => ("disk_full", "the disk is full"),
            Self::RemoveLockFile => ("remove_lock_file", "somebody removes the file of a key that is in use"),
            Self::FailOver => ("fail_over", "Sentinels make a replica the primary, as before maintenance"),
            Self::FallBehind => (
                "fall_behind",
                "the replicas lose the connection to the primary and fall behind, that is killed, and one of them takes its place",
            ),
            Self::ClusterFailOver => (
                "cluster_fail_over",
                "a replica in a Cluster takes over, while the old primary runs or after it was killed",
            ),
            Self::MoveSlot => ("move_slot", "a slot of a Cluster moves to another node"),
            Self::SwitchOver => {
                ("switch_over", "an operator makes the replica the primary, and moves the address to it")
            }
            Self::MoveLeader => ("move_leader", "the leader of the servers hands its office over"),
            Self::PartLeader => {
                ("part_leader", "what the leader says to the other servers is lost, and it hears them and the clients")
            }
            Self::Compact => ("compact", "the history of the servers is compacted"),
            Self::SpaceUsedUp => {
                ("space_used_up", "the servers take nothing more, because the space that they may have is used up")
            }
            Self::LockedTable => ("locked_table", "another session locks the tables"),
            Self::ReadOnly => ("read_only", "a server becomes read-only, and takes writes again"),
            Self::ForceRelease => ("force_release", "an operator frees a key that is held"),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.told().0
    }

    pub(crate) fn in_words(self) -> &'static str {
        self.told().1
    }

    pub(crate) fn hits(self) -> Hits {
        match self {
            Self::ForceRelease | Self::RemoveLockFile => Hits::Key,
            _ if TO_CLIENTS.contains(&self) => Hits::Client,
            _ if ON_THE_WAY.contains(&self) => Hits::Link,
            _ => Hits::Server,
        }
    }

    /// Whether it hits the leader of the servers, whichever that is.
    pub(crate) fn hits_the_leader(self) -> bool {
        matches!(self, Self::StopLeader | Self::RestartLeader | Self::MoveLeader | Self::PartLeader)
    }
}

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

/// What a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hits {
    Client,
    Link,
    Server,
    Key,
}

impl Fault {
    /// The name in the history, in the schedule, and in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillClient => "kill_client",
            Self::StopClient => "stop_client",
            Self::ClientClockAhead => "client_clock_ahead",
            Self::ClientClockBack => "client_clock_back",
            Self::CutConnections => "cut_connections",
            Self::RefuseConnections => "refuse_connections",
            Self::BlackHole => "black_hole",
            Self::LoseRequests => "lose_requests",
            Self::LoseReplies => "lose_replies",
            Self::LoseOneReply => "lose_one_reply",
            Self::TearReply => "tear_reply",
            Self::Delay => "delay",
            Self::LateThenSilent => "late_then_silent",
            Self::StopServer => "stop_server",
            Self::StopTwoServers => "stop_two_servers",
            Self::StopAgent => "stop_agent",
            Self::RestartAgent => "restart_agent",
            Self::StopLeader => "stop_leader",
            Self::RestartServer => "restart_server",
            Self::RestartLeader => "restart_leader",
            Self::RestartAllServers => "restart_all_servers",
            Self::EmptyServer => "empty_server",
            Self::ReplaceServer => "replace_server",
            Self::ServerClockAhead => "server_clock_ahead",
            Self::ServerClockBack => "server_clock_back",
            Self::SlowDisk => "slow_disk",
            Self::KillConnections => "kill_connections",
            Self::NoConnectionsLeft => "no_connections_left",
            Self::FlushScripts => "flush_scripts",
            Self::MemoryFull => "memory_full",
            Self::DiskFull => "disk_full",
            Self::RemoveLockFile => "remove_lock_file",
            Self::FailOver => "fail_over",
            Self::FallBehind => "fall_behind",
            Self::ClusterFailOver => "cluster_fail_over",
            Self::MoveSlot => "move_slot",
            Self::SwitchOver => "switch_over",
            Self::MoveLeader => "move_leader",
            Self::PartLeader => "part_leader",
            Self::Compact => "compact",
            Self::SpaceUsedUp => "space_used_up",
            Self::LockedTable => "locked_table",
            Self::ReadOnly => "read_only",
            Self::ForceRelease => "force_release",
        }
    }

    /// What happens, for people.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::KillClient => "a client is killed (SIGKILL)",
            Self::StopClient => "a client is stopped (SIGSTOP), mostly for longer than a lease, and goes on",
            Self::ClientClockAhead => "a client's wall clock jumps ahead by an hour",
            Self::ClientClockBack => "a client's wall clock is set back by an hour",
            Self::CutConnections => "connections are cut",
            Self::RefuseConnections => "connections are cut and refused",
            Self::BlackHole => "nothing gets through, and connections stay open",
            Self::LoseRequests => "requests are lost, and replies are not",
            Self::LoseReplies => "replies are lost, and requests are not",
            Self::LoseOneReply => "single replies are lost, with their connection",
            Self::TearReply => "connections break in the middle of a reply",
            Self::Delay => "everything is late, by up to 0.3 s each way",
            Self::LateThenSilent => "replies are late by 0.6 s, and then nothing gets through for longer than a lease",
            Self::StopServer => "a server is stopped (SIGSTOP), and goes on",
            Self::StopTwoServers => "two servers are stopped (SIGSTOP) at a time, and go on",
            Self::StopAgent => "an agent is stopped (SIGSTOP), and goes on",
            Self::RestartAgent => "an agent is killed (SIGKILL), and another takes its place",
            Self::StopLeader => "the leader of the servers is stopped (SIGSTOP), and goes on",
            Self::RestartServer => "a server is killed (SIGKILL), and starts again with its data",
            Self::RestartLeader => "the leader of the servers is killed (SIGKILL), and starts again with its data",
            Self::RestartAllServers => "all servers are killed (SIGKILL) at a time, and start again with their data",
            Self::EmptyServer => "a server is killed (SIGKILL), and starts again without its data",
            Self::ReplaceServer => {
                "a server is killed (SIGKILL) and loses its data, and an operator has a new member take its place"
            }
            Self::ServerClockAhead => "a server's clock jumps ahead by seconds",
            Self::ServerClockBack => "a server's clock is set back by seconds",
            Self::SlowDisk => "each fsync of a server takes up to 0.1 s longer",
            Self::KillConnections => "a server ends all connections",
            Self::NoConnectionsLeft => "a server lets no more connections in",
            Self::FlushScripts => "a server forgets its scripts",
            Self::MemoryFull => "a server has no memory left",
            Self::DiskFull => "the disk is full",
            Self::RemoveLockFile => "somebody removes the file of a key that is in use",
            Self::FailOver => "Sentinels make a replica the primary, as before maintenance",
            Self::FallBehind => {
                "the replicas lose the connection to the primary and fall behind, that is killed, and one of them takes its place"
            }
            Self::ClusterFailOver => {
                "a replica in a Cluster takes over, while the old primary runs or after it was killed"
            }
            Self::MoveSlot => "a slot of a Cluster moves to another node",
            Self::SwitchOver => "an operator makes the replica the primary, and moves the address to it",
            Self::MoveLeader => "the leader of the servers hands its office over",
            Self::PartLeader => "what the leader says to the other servers is lost, and it hears them and the clients",
            Self::Compact => "the history of the servers is compacted",
            Self::SpaceUsedUp => "the servers take nothing more, because the space that they may have is used up",
            Self::LockedTable => "another session locks the tables",
            Self::ReadOnly => "a server becomes read-only, and takes writes again",
            Self::ForceRelease => "an operator frees a key that is held",
        }
    }

    /// Whether it hits the leader of the servers, whichever that is.
    pub(crate) fn hits_the_leader(self) -> bool {
        matches!(self, Self::StopLeader | Self::RestartLeader | Self::MoveLeader | Self::PartLeader)
    }

    pub(crate) fn hits(self) -> Hits {
        match self {
            Self::KillClient | Self::StopClient | Self::ClientClockAhead | Self::ClientClockBack => Hits::Client,
            Self::CutConnections
            | Self::RefuseConnections
            | Self::BlackHole
            | Self::LoseRequests
            | Self::LoseReplies
            | Self::LoseOneReply
            | Self::TearReply
            | Self::Delay
            | Self::LateThenSilent => Hits::Link,
            Self::ForceRelease | Self::RemoveLockFile => Hits::Key,
            _ => Hits::Server,
        }
    }
}

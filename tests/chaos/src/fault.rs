//! The kinds of faults: of clients, of the network and of servers.

macro_rules! faults {
    ($($fault:ident $name:literal: $in_words:literal;)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Fault {
            $($fault,)*
        }

        impl Fault {
            /// The name in the history, in the schedule, and in the report.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)*
                }
            }

            /// What happens, for people.
            pub(crate) const fn in_words(self) -> &'static str {
                match self {
                    $(Self::$fault => $in_words,)*
                }
            }
        }
    };
}

faults! {
    KillClient "kill_client": "a client is killed (SIGKILL)";
    StopClient "stop_client": "a client is stopped (SIGSTOP), mostly for longer than a lease, and goes on";
    ClientClockAhead "client_clock_ahead": "a client's wall clock jumps ahead by an hour";
    ClientClockBack "client_clock_back": "a client's wall clock is set back by an hour";
    CutConnections "cut_connections": "connections are cut";
    RefuseConnections "refuse_connections": "connections are cut and refused";
    BlackHole "black_hole": "nothing gets through, and connections stay open";
    LoseRequests "lose_requests": "requests are lost, and replies are not";
    LoseReplies "lose_replies": "replies are lost, and requests are not";
    LoseOneReply "lose_one_reply": "single replies are lost, with their connection";
    TearReply "tear_reply": "connections break in the middle of a reply";
    Delay "delay": "everything is late, by up to 0.3 s each way";
    LateThenSilent "late_then_silent":
        "replies are late by 0.6 s, and then nothing gets through for longer than a lease";
    StopServer "stop_server": "a server is stopped (SIGSTOP), and goes on";
    StopTwoServers "stop_two_servers": "two servers are stopped (SIGSTOP) at a time, and go on";
    StopAgent "stop_agent": "an agent is stopped (SIGSTOP), and goes on";
    RestartAgent "restart_agent": "an agent is killed (SIGKILL), and another takes its place";
    StopLeader "stop_leader": "the leader of the servers is stopped (SIGSTOP), and goes on";
    RestartServer "restart_server": "a server is killed (SIGKILL), and starts again with its data";
    RestartLeader "restart_leader": "the leader of the servers is killed (SIGKILL), and starts again with its data";
    RestartAllServers "restart_all_servers":
        "all servers are killed (SIGKILL) at a time, and start again with their data";
    EmptyServer "empty_server": "a server is killed (SIGKILL), and starts again without its data";
    ReplaceServer "replace_server":
        "a server is killed (SIGKILL) and loses its data, and an operator has a new member take its place";
    ServerClockAhead "server_clock_ahead": "a server's clock jumps ahead by seconds";
    ServerClockBack "server_clock_back": "a server's clock is set back by seconds";
    SlowDisk "slow_disk": "each fsync of a server takes up to 0.1 s longer";
    KillConnections "kill_connections": "a server ends all connections";
    NoConnectionsLeft "no_connections_left": "a server lets no more connections in";
    FlushScripts "flush_scripts": "a server forgets its scripts";
    MemoryFull "memory_full": "a server has no memory left";
    DiskFull "disk_full": "the disk is full";
    RemoveLockFile "remove_lock_file": "somebody removes the file of a key that is in use";
    FailOver "fail_over": "Sentinels make a replica the primary, as before maintenance";
    FallBehind "fall_behind":
        "the replicas lose the connection to the primary and fall behind, that is killed, and one of them takes its \
         place";
    ClusterFailOver "cluster_fail_over":
        "a replica in a Cluster takes over, while the old primary runs or after it was killed";
    MoveSlot "move_slot": "a slot of a Cluster moves to another node";
    SwitchOver "switch_over": "an operator makes the replica the primary, and moves the address to it";
    MoveLeader "move_leader": "the leader of the servers hands its office over";
    PartLeader "part_leader": "what the leader says to the other servers is lost, and it hears them and the clients";
    Compact "compact": "the history of the servers is compacted";
    SpaceUsedUp "space_used_up": "the servers take nothing more, because the space that they may have is used up";
    LockedTable "locked_table": "another session locks the tables";
    ReadOnly "read_only": "a server becomes read-only, and takes writes again";
    ForceRelease "force_release": "an operator frees a key that is held";
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
    /// The leader of the servers, whichever that is.
    Leader,
    Agent,
    Key,
}

impl Fault {
    pub(crate) fn hits(self) -> Hits {
        match self {
            Self::ForceRelease | Self::RemoveLockFile => Hits::Key,
            Self::StopLeader | Self::RestartLeader | Self::MoveLeader | Self::PartLeader => Hits::Leader,
            Self::StopAgent | Self::RestartAgent => Hits::Agent,
            _ if TO_CLIENTS.contains(&self) => Hits::Client,
            _ if ON_THE_WAY.contains(&self) => Hits::Link,
            _ => Hits::Server,
        }
    }
}

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Answers, BoxFuture, Limits, Operations, Result};
use leasehold_core::{GroupCommit as Commits, Turns};

use crate::client::connection::Connection;
use crate::script::arguments::ScriptArguments;
use crate::script::batch::{Request, encode, sorted};
use crate::script::function::{ScriptFunction, ScriptFunctions};
use crate::script::reply::Reply;

/// Sends script functions: alone as long as that keeps up, and as one batch those that come in meanwhile. In a Cluster
/// every function is sent alone: two keys are hardly ever in the same slot.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    calls: Calls,
    commits: Commits<Calls>,
}

/// Calls of functions over one connection.
#[derive(Clone, Debug)]
struct Calls {
    connection: Connection,
    functions: Arc<ScriptFunctions>,
}

impl GroupCommit {
    /// Sends these functions over this connection; each alone unless it is `enabled`.
    pub(crate) fn new(connection: &Connection, functions: &'static [&'static ScriptFunction], enabled: bool) -> Self {
        let calls = Calls { connection: connection.clone(), functions: Arc::new(ScriptFunctions::new(functions)) };
        let enabled = enabled && connection.keys_in_a_script() > 1;
        Self { commits: Commits::new(calls.clone(), enabled, &Turns::default()), calls }
    }

    /// Loads the script into the server; see [`Store::load`](crate::Store::load).
    pub(crate) async fn load(&self) -> Result<()> {
        let Calls { connection, functions } = &self.calls;
        connection.evaluate(functions.script(), 0, &[], connection.command_timeout()).await.map(drop)
    }

    /// Runs one of the functions, within the command timeout or less, after a wait for what is in flight of a fraction of that.
    /// A function that is given less time than the command timeout, and misses it, fails alone: the
    /// others of its batch go on for as long as they were given. See [`Store::run_function`](crate::Store::run_function).
    pub(crate) fn run(
        &self,
        function: &'static ScriptFunction,
        arguments: ScriptArguments,
        within: Option<Duration>,
    ) -> BoxFuture<'_, Result<Reply>> {
        debug_assert!(function.takes(arguments.count()), "{function:?}");
        self.commits.run(Request { function, arguments, limit: self.calls.connection.limit(within) })
    }
}

impl Operations for Calls {
    type Request = Request;
    type Answer = Reply;
    const NAME: &'static str = "ask Redis";
    /// Beyond 32 functions the server's time for each no longer falls, and other clients wait longer.
    const LIMITS: Limits = Limits { in_flight: 2, least: 4, most: 32 };

    fn row(_: &Request) -> Option<&[u8]> {
        None
    }

    fn alike(one: &Request, another: &Request) -> bool {
        one.limit == another.limit
    }

    /// On one connection what comes behind a command that hangs may hang, too, and then fails as late.
    fn patience(&self) -> Duration {
        self.connection.command_timeout() / 40
    }

    fn alone<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(async move { self.send(&[request]).await })
    }

    fn together<'a>(&'a self, requests: &'a [&'a Request]) -> BoxFuture<'a, Result<Answers<Self>>> {
        Box::pin(async {
            let (order, requests) = sorted(&self.functions, requests);
            let replies = self.send(&requests).await?.lines(requests.len());
            let mut answers: Answers<Self> = order.iter().map(|_| None).collect();
            for (place, reply) in order.into_iter().zip(replies) {
                answers[place] = Some(Ok(reply));
            }
            Ok(answers)
        })
    }
}

impl Calls {
    /// Sends requests with one limit, in one script.
    async fn send(&self, requests: &[&Request]) -> Result<Reply> {
        let limit = requests.first().map_or(self.connection.command_timeout(), |request| request.limit);
        let (keys, arguments) = encode(requests.iter().copied());
        self.connection.evaluate(self.functions.script(), keys, &arguments, limit).await
    }
}

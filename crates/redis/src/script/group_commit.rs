use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Answers, BoxFuture, GroupCommit, Limits, Operations, Result, Turns};

use crate::client::connection::Connection;
use crate::script::batch::{Request, encode, sorted};
use crate::script::function::ScriptFunctions;
use crate::script::reply::Reply;

/// Calls of functions over one connection.
#[derive(Debug)]
pub(crate) struct Calls {
    connection: Connection,
    functions: Arc<ScriptFunctions>,
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

    /// One that is given less time, and misses it, fails alone.
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
    /// Sends these functions: alone as long as that keeps up, and as one batch those that come in meanwhile; each alone unless it
    /// is `enabled`, and in a Cluster: two keys are hardly ever in the same slot.
    pub(crate) fn grouped(on: &Connection, functions: &Arc<ScriptFunctions>, enabled: bool) -> GroupCommit<Self> {
        let enabled = enabled && on.keys_in_a_script() > 1;
        let calls = Self { connection: on.clone(), functions: Arc::clone(functions) };
        GroupCommit::new(calls, enabled, &Turns::default())
    }

    /// Sends requests with one limit, in one script.
    async fn send(&self, requests: &[&Request]) -> Result<Reply> {
        let limit = requests.first().map_or(self.connection.command_timeout(), |request| request.limit);
        let (keys, arguments) = encode(requests.iter().copied());
        self.connection.evaluate(&self.functions.script, keys, arguments.iter(), limit).await
    }
}

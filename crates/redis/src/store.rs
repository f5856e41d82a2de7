use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fred::clients::Client;
use futures::future::{BoxFuture, Either, Ready, join, join_all, ready};
use leasehold_core::{
    Attempt, Cursor, Error, ErrorKind, GrantRef, GroupCommit, LeaseStatus, LockKey, Notifications, Result, Subscription,
};

use crate::client::confirmation::Confirmation;
use crate::client::connection::Connection;
use crate::client::endpoint::Endpoint;
use crate::client::info::{refuse_a_replica, warn_of_eviction, warn_of_fail_over};
use crate::client::settings::ConnectionSettings;
use crate::keyspace::names::{KeyNames, LOCK, Namespace};
use crate::pubsub::notifications::PubSub;
use crate::pubsub::subscribers::forced_channel;
use crate::script::arguments::ScriptArguments;
use crate::script::batch::Request;
use crate::script::function::{ScriptFunction, ScriptFunctions};
use crate::script::group_commit::Calls;
use crate::script::reply::Reply;
use crate::script::source::Script;

/// What replicas confirm, where they are asked.
pub type Confirmed<'a, T> = Either<Ready<T>, BoxFuture<'a, T>>;

/// One Redis (a server, a Sentinel set or a Cluster) as a backend uses it: scripts, group commit, notifications, and the
/// names of one namespace. Clones share one connection to each primary, and a second one for notifications, which is made
/// when somebody waits for the first time.
///
/// Connections that the store made end with [`close`](Self::close) or with the last clone; a client of the caller's is left
/// alone. Futures are boxed, so that the driver is compiled in this crate only.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    connection: Connection,
    namespace: Namespace,
    functions: Arc<ScriptFunctions>,
    calls: GroupCommit<Calls>,
    notifications: PubSub,
    confirmation: Option<Confirmation>,
}

/// What a backend asks of a [`Store`] beside the settings of its caller.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// The functions that [`Store::run_function`] runs.
    pub functions: &'static [&'static ScriptFunction],
    /// What the notifications are about.
    pub notifications: Notify,
}

/// What the notifications of a [`Store`] are about.
#[derive(Clone, Copy, Debug)]
pub enum Notify {
    /// Releases. Each is published on the channel of its key, [`CHANNEL`](crate::CHANNEL).
    Releases,
    /// Grants to waiters of this process. They are published on one channel of this process, its inbox, for all keys: owner
    /// id (32 hex digits), epoch and the name of this `part` of the key, divided by spaces.
    Grants {
        /// The part of a key's names by which a message names the key.
        part: &'static str,
        /// Whether a message is believed. Every user who may publish can forge one; without
        /// trust it is only a reason to ask.
        trusted: bool,
    },
}

impl Store {
    /// Checks the settings, connects, and warns through `tracing` of a server that evicts locks, or whose fail-over could
    /// put two holders side by side.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) before anything is sent; then as for [`connect`](Self::connect), and
    /// [`Unavailable`](ErrorKind::Unavailable) where the server is a read-only replica.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub fn open(settings: ConnectionSettings, options: StoreOptions) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let (endpoint, namespace) = settings.check()?;
            let connection = Connection::open(&endpoint, settings.command_timeout).await?;
            if let Some(warning) = refuse_a_replica(&connection).await? {
                tracing::warn!("{warning}");
            }
            warn_of_eviction(&connection).await;
            // What replicas confirm is on them.
            if settings.confirmation().is_none() {
                warn_of_fail_over(&connection).await;
            }
            Ok(Self::new(connection, namespace, &settings, options))
        })
    }

    /// Uses a client that the caller made, connected and will close, with settings that are not checked. Sends nothing.
    ///
    /// Its reconnection policy is the caller's business, and so is how it follows a fail-over or a Cluster that changes;
    /// time limits and the rule that no command is sent twice are this crate's.
    pub fn from_client(client: Client, settings: &ConnectionSettings, options: StoreOptions) -> Self {
        Self::new(Connection::borrow(client, settings.command_timeout), Namespace::default(), settings, options)
    }

    /// Connects to an endpoint, in a namespace that was chosen before, without asking the server anything.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) when nobody answers at that address, and [`Backend`](ErrorKind::Backend) when
    /// the server does not let us in; both say what to check, and neither shows a password.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub fn connect<'a>(
        endpoint: &'a Endpoint,
        namespace: &'a Namespace,
        settings: &'a ConnectionSettings,
        options: StoreOptions,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            let connection = Connection::open(endpoint, settings.command_timeout).await?;
            Ok(Self::new(connection, namespace.clone(), settings, options))
        })
    }

    fn new(connection: Connection, namespace: Namespace, settings: &ConnectionSettings, options: StoreOptions) -> Self {
        let notifications = match options.notifications {
            Notify::Releases => PubSub::new(&connection, &namespace),
            Notify::Grants { part, trusted } => PubSub::with_inbox(&connection, &namespace, part, trusted),
        };
        let functions = Arc::new(ScriptFunctions::new(options.functions));
        let calls = Calls::grouped(&connection, &functions, settings.group_commit);
        let confirmation = settings.confirmation();
        Self(Arc::new(Inner { connection, namespace, functions, calls, notifications, confirmation }))
    }

    /// The names of one key.
    pub fn names(&self, key: &LockKey) -> KeyNames {
        self.0.namespace.of(key)
    }

    /// How long a command may take unless its caller gives it less.
    pub fn command_timeout(&self) -> Duration {
        self.0.connection.command_timeout()
    }

    /// Runs a script function, alone or in a batch with others, within the command timeout or less; before that, the wait
    /// for what is in flight takes as long again at most.
    ///
    /// # Errors
    /// Each function its own. [`Unavailable`](ErrorKind::Unavailable): certainly not run, and worth another try.
    /// [`Indeterminate`](ErrorKind::Indeterminate): it may have been run. [`Backend`](ErrorKind::Backend): refused for good.
    ///
    /// # Cancel safety
    /// Dropping the future may or may not keep the function from being run. Others of its batch are not touched.
    pub fn run_function(
        &self,
        function: &'static ScriptFunction,
        arguments: ScriptArguments,
        within: Option<Duration>,
    ) -> BoxFuture<'_, Result<Reply>> {
        debug_assert!(function.takes(arguments.count()), "{function:?}");
        self.0.calls.run(Request { function, arguments, limit: self.0.connection.limit(within) })
    }

    /// Runs a script by itself on keys of one hash slot, within the command timeout or less; `arguments` are so many keys,
    /// then the arguments.
    ///
    /// # Errors
    /// As for [`run_function`](Self::run_function).
    pub fn run<'a>(
        &'a self,
        script: &'a Script,
        keys: usize,
        arguments: ScriptArguments,
        within: Option<Duration>,
    ) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(self.0.connection.run(script, keys, arguments, within))
    }

    /// Runs a script that answers for each of `count` locks, with as many locks at once as the server allows: 250, in a
    /// Cluster one. `arguments` makes the keys, one for each lock of a range, and the arguments.
    ///
    /// The answer has one reply for each lock, in order. A script that replies `held` and nothing else says so of all.
    ///
    /// # Errors
    /// As for [`run_function`](Self::run_function), for all locks of a run that failed.
    pub fn run_for_each<'a>(
        &'a self,
        script: &'a Script,
        count: usize,
        arguments: &'a (dyn Fn(Range<usize>) -> ScriptArguments + Sync),
        within: Option<Duration>,
    ) -> BoxFuture<'a, Vec<Result<Reply>>> {
        Box::pin(async move {
            let step = self.0.connection.keys_in_a_script();
            let ranges = (0..count).step_by(step).map(|start| start..count.min(start + step));
            let run = |range: Range<usize>| async move {
                let count = range.len();
                match self.0.connection.run(script, count, arguments(range), within).await {
                    Ok(reply) if reply.words() == ["held"] => vec![Ok(reply); count],
                    Ok(reply) => reply.each_of(count).into_iter().map(Ok).collect(),
                    Err(error) => (0..count).map(|_| Err(error.retell())).collect(),
                }
            };
            join_all(ranges.map(run)).await.into_iter().flatten().collect()
        })
    }

    /// Loads the scripts of all functions, and these, where the order of commands matters: a script that the server does not
    /// know is sent again with its source, and comes after what was sent behind it. They are run without keys.
    ///
    /// # Errors
    /// As for [`run_function`](Self::run_function).
    pub fn load<'a>(&'a self, scripts: &'a [&'a Script]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let connection = &self.0.connection;
            connection.evaluate(&self.0.functions.script, 0, [].into_iter(), connection.command_timeout()).await?;
            for script in scripts {
                connection.run(script, 0, ScriptArguments::default(), None).await?;
            }
            Ok(())
        })
    }

    /// Warns through `tracing` of a server that deletes entries when it runs out of memory: among them locks that are held,
    /// and their counters. Also of a server that refuses to say.
    pub fn warn_of_eviction(&self) -> BoxFuture<'_, ()> {
        Box::pin(warn_of_eviction(&self.0.connection))
    }

    /// Some of the keys that have this part and start with `prefix`, in order, and where to go on; `None` after the last.
    ///
    /// # Errors
    /// As for [`run_function`](Self::run_function); [`InvalidOptions`](ErrorKind::InvalidOptions) for a cursor that no call
    /// gave; [`Backend`](ErrorKind::Backend) when the server does not come to an end within a billion entries, or gives an
    /// answer that makes no sense.
    pub fn keys<'a>(
        &'a self,
        part: &'a str,
        prefix: &'a str,
        after: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<(Vec<LockKey>, Option<Cursor>)>> {
        Box::pin(async move {
            let Inner { connection, namespace, .. } = &*self.0;
            let (found, next) = connection.scan(&namespace.pattern(prefix, part), after).await?;
            let mut keys: Vec<LockKey> = found.iter().filter_map(|name| namespace.key(name, part)).collect();
            keys.sort_unstable();
            keys.dedup();
            Ok((keys, next))
        })
    }

    /// The text under a name, if there is one.
    ///
    /// # Errors
    /// As for [`run_function`](Self::run_function).
    pub fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<String>>> {
        Box::pin(self.0.connection.get(name))
    }

    /// Lets a grant count. Where replicas are to confirm grants it is renewed, on one connection with the question how many have that,
    /// and given back if too few do: a fail-over could forget it. The renewal is a script as for [`renew`](Self::renew), with its
    /// arguments.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) when it was given back, [`Indeterminate`](ErrorKind::Indeterminate) when that
    /// failed too, so that the engine goes on giving it back.
    pub fn confirm<'a>(
        &'a self,
        grant: &'a GrantRef,
        renewal: impl FnOnce() -> (&'static Script, ScriptArguments),
        give_back: impl FnOnce() -> BoxFuture<'a, Result<LeaseStatus>>,
    ) -> Confirmed<'a, Result<Attempt>> {
        let granted = Attempt::Granted { epoch: grant.epoch };
        let Some(confirmation) = self.0.confirmation else { return Either::Left(ready(Ok(granted))) };
        let ((renew, arguments), give_back) = (renewal(), give_back());
        Either::Right(Box::pin(async move {
            let what = "the grant, which was given back,";
            match confirmation.confirm_by_renewal(&self.0.connection, renew, arguments, what).await {
                Ok(()) => Ok(granted),
                Err(short) => {
                    let unknown = |error| Error::new(ErrorKind::Indeterminate, "acquire").caused_by(error);
                    Err(give_back.await.map_or_else(unknown, |_| short))
                }
            }
        }))
    }

    /// Confirms that a grant has another owner, as [`confirm`](Self::confirm) does.
    ///
    /// # Errors
    /// [`Indeterminate`](ErrorKind::Indeterminate): a replica that does not have it would let the old owner go on, or be taken over
    /// once more.
    pub(crate) async fn confirm_owner(&self, renew: &Script, arguments: ScriptArguments) -> Result<()> {
        let Some(confirmation) = self.0.confirmation else { return Ok(()) };
        let confirmed = confirmation.confirm_by_renewal(&self.0.connection, renew, arguments, "the new owner").await;
        confirmed.map_err(|error| Error::new(ErrorKind::Indeterminate, "attach").caused_by(error))
    }

    /// How long a step may take, with what replicas may take to confirm it.
    pub fn answers_within(&self) -> Duration {
        self.command_timeout() + self.0.confirmation.map(|confirmation| confirmation.within).unwrap_or_default()
    }

    /// Counts those renewals that enough replicas have, where they are asked. The grants are in the order of `statuses`; each primary
    /// is asked once for all of them.
    ///
    /// A renewal that falls short is [`Unavailable`](ErrorKind::Unavailable): the entry may live longer on the primary, but
    /// its successor would not know.
    pub fn confirm_renewals<'g>(
        &self,
        within: Duration,
        grants: impl Iterator<Item = &'g GrantRef>,
        statuses: Vec<Result<LeaseStatus>>,
    ) -> Confirmed<'_, Vec<Result<LeaseStatus>>> {
        let Some(confirmation) = self.0.confirmation else { return Either::Left(ready(statuses)) };
        let names = grants.map(|grant| self.names(&grant.key).part(LOCK)).collect();
        Either::Right(confirmation.confirm_renewals(within, &self.0.connection, names, statuses))
    }

    /// The error for a reply that is none of a script's own answers: `foreign`, key, type (there is an entry under our name
    /// that Leasehold did not write) · `refused`, reply (the server refused a command) · `endless`, key (an entry without a
    /// lease) · `spent`, key (a counter without numbers left) · anything else, which no script answers.
    pub fn script_error(&self, words: &[&str]) -> Error {
        match *words {
            ["foreign", key, kind] => {
                let kind = if kind.is_empty() { "another type" } else { kind };
                self.refusal(&format!(
                    "the entry `{key}` is not of this backend: {kind}; if another one, or another version, locks there, give \
                     each a namespace of its own, else delete it"
                ))
            }
            ["endless", key] => self.refusal(&format!(
                "the entry `{key}` never expires, so Leasehold did not write it; force-release frees it"
            )),
            ["spent", key] => self.refusal(&format!("the counter `{key}` is beyond the year 2248; delete it")),
            ["refused", reply] => self.0.connection.refused(reply),
            _ => {
                Error::new(ErrorKind::Backend, "ask Redis").detail("the script gave an answer that nobody understands")
            }
        }
    }

    /// An error of kind [`Backend`](ErrorKind::Backend) that quotes the server, without the passwords that the server was given.
    pub fn refusal(&self, detail: &str) -> Error {
        Error::new(ErrorKind::Backend, "ask Redis").detail(self.0.connection.quote(detail))
    }

    /// Warns through `tracing`, once, if there is a reason why a release did not serve or notify those who wait.
    pub fn warn_of_waiters(&self, reason: &[&str]) {
        self.0.notifications.warn_of_waiters(reason);
    }

    /// The channel on which grants are received at this moment, behind `!` or, in a Cluster, behind `?`: there a node knows
    /// only its own subscribers. `None` until somebody has subscribed.
    pub fn inbox(&self) -> Option<String> {
        let prefix = if self.0.connection.is_clustered() { '?' } else { '!' };
        self.0.notifications.inbox().map(|inbox| format!("{prefix}{inbox}"))
    }

    /// The channel on which every process with an [`inbox`](Self::inbox) hears the name of a lock that was taken from its holder by
    /// force, so that the holder's process can ask before its next renewal is due. A message is no more than a reason to ask.
    pub fn forced_channel(&self) -> String {
        forced_channel(&self.0.namespace)
    }

    /// Ends both connections, if they are our own, within the [`command_timeout`](Self::command_timeout) each. Later
    /// commands and subscriptions fail with [`Closed`](ErrorKind::Closed).
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            join(self.0.notifications.close(), self.0.connection.close()).await;
        })
    }
}

/// Subscriptions to the releases or grants of one key.
#[async_trait]
impl Notifications for Store {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        self.0.notifications.subscribe(key).await
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("connection", &self.0.connection)
            .field("namespace", &self.0.namespace)
            .field("notifications", &self.0.notifications)
            .finish_non_exhaustive()
    }
}

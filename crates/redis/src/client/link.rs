use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::ClientLike;
use fred::types::config::{Config, Options, Server};
use fred::types::{ClusterHash, CustomCommand, Value};
use leasehold_core::{Error, ErrorKind, Result};
use tokio::time::{sleep, timeout};

use crate::client::command::{Command, SendError, Target};
use crate::client::connect_errors::ConnectErrors;
use crate::client::driver::{self, MOST_IN_FLIGHT};
use crate::client::error::{self, no_connection};
use crate::client::secrets;
use crate::client::supervisor::{ProbeReason, Supervisor};

/// One connection to one server, or a client of the caller's and what it is connected to.
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) shown: String,
    connect_errors: ConnectErrors,
    /// `None`: borrowed.
    supervisor: Option<Supervisor>,
    in_flight: AtomicUsize,
}

impl Link {
    /// Connects.
    pub(crate) async fn open(config: Config, shown: String, command_timeout: Duration) -> Result<Self, DriverError> {
        let client = driver::builder(config, command_timeout).build()?;
        let connect_errors = ConnectErrors::of(&client);
        let supervisor = Some(Supervisor::start(&client).await?);
        Ok(Self { client, shown, connect_errors, supervisor, in_flight: AtomicUsize::new(0) })
    }

    /// Begins to connect, and goes on until it has.
    pub(crate) fn launch(config: Config, shown: String, command_timeout: Duration) -> Result<Self, DriverError> {
        let client = driver::builder(config, command_timeout).build()?;
        let connect_errors = ConnectErrors::of(&client);
        let supervisor = Some(Supervisor::launch(&client));
        Ok(Self { client, shown, connect_errors, supervisor, in_flight: AtomicUsize::new(0) })
    }

    pub(crate) fn borrow(client: Client) -> Self {
        let hosts: Vec<_> = client.client_config().server.hosts().iter().map(ToString::to_string).collect();
        let connect_errors = ConnectErrors::of(&client);
        Self { client, shown: hosts.join(","), connect_errors, supervisor: None, in_flight: AtomicUsize::new(0) }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.is_connected() && !self.supervisor.as_ref().is_some_and(Supervisor::is_down)
    }

    pub(crate) async fn close(&self) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.close().await;
        }
    }

    /// Waits until it is connected, or the server has refused to be.
    pub(crate) async fn ready(&self, within: Duration) -> Result<()> {
        /// There is no event that covers all ways of coming back.
        const SLICE: Duration = Duration::from_millis(10);
        let connected = async {
            while !self.is_connected() {
                self.let_in()?;
                sleep(SLICE).await;
            }
            self.connect_errors.forget(&self.client);
            Ok(())
        };
        timeout(within, connected).await.unwrap_or_else(|_| Err(no_connection(&self.shown)))
    }

    /// An error, if the last try to connect was refused: nobody would ever come to the end of waiting for a connection.
    fn let_in(&self) -> Result<()> {
        let Some(error) = self.connect_errors.last(&self.client) else { return Ok(()) };
        let secrets = secrets::of(&self.client.client_config());
        error::shut_out(&self.shown, &error, &secrets).map_or(Ok(()), Err)
    }

    /// Sends one command and waits for its answer for at most `within`; before, as long again for a lost connection
    /// to come back.
    pub(crate) async fn send(&self, command: Command, within: Duration) -> Result<Value, SendError> {
        /// A node may send us on, and the next one again.
        const REDIRECTIONS: usize = 3;
        self.ready(within).await.map_err(SendError::NotSent)?;
        let place = self.place().map_err(SendError::NotSent)?;
        let (hash, node) = match command.target {
            Target::Slot(slot) => (ClusterHash::Custom(slot), None),
            Target::Node(node) => (ClusterHash::Random, node),
        };
        // A borrowed client may be one that looks after a whole Cluster.
        let clustered = self.client.is_clustered();
        let options = self.options(within, node.filter(|_| clustered));
        if let Some(wait) = command.wait {
            let both = vec![(command.name, command.arguments), ("WAIT", wait)];
            let answers = self.together(both, &hash, &options).await;
            return self.told(answers.map(Value::Array), &place);
        }
        let custom = CustomCommand::new_static(command.name, hash, false);
        let client = self.client.with_options(&options);
        let mut redirections = if clustered { REDIRECTIONS } else { 0 };
        let answer = loop {
            if redirections == 0 {
                break client.custom(custom, command.arguments).await;
            }
            let answer: Result<Value, DriverError> = client.custom(custom.clone(), command.arguments.clone()).await;
            // Not carried out by the node that it went to; the driver knows the right one by now.
            if !answer.as_ref().is_err_and(|error| *error.kind() == DriverKind::Routing) {
                break answer;
            }
            redirections -= 1;
        };
        self.told(answer, &place)
    }

    /// Sends one command to a node that does not serve its slot yet.
    pub(crate) async fn send_asking(&self, command: Command, within: Duration) -> Result<Value, SendError> {
        self.ready(within).await.map_err(SendError::NotSent)?;
        let place = self.place().map_err(SendError::NotSent)?;
        let is_confirmed = command.wait.is_some();
        // It counts for the next command on the connection, so that nothing may come between.
        let mut commands = vec![("ASKING", Vec::new()), (command.name, command.arguments)];
        commands.extend(command.wait.map(|wait| ("WAIT", wait)));
        let answers = self.together(commands, &ClusterHash::Random, &self.options(within, None)).await;
        let answer = answers.map(|mut answers| {
            if is_confirmed { Value::Array(answers.split_off(1)) } else { answers.pop().unwrap_or(Value::Null) }
        });
        self.told(answer, &place)
    }

    /// Sends commands one right behind the other on one connection. The first one that fails is the answer.
    async fn together(
        &self,
        commands: Vec<(&'static str, Vec<Value>)>,
        hash: &ClusterHash,
        options: &Options,
    ) -> Result<Vec<Value>, DriverError> {
        let batch = self.client.pipeline().with_options(options);
        for (name, arguments) in commands {
            batch.custom::<Value, Value>(CustomCommand::new_static(name, hash.clone(), false), arguments).await?;
        }
        batch.all().await
    }

    fn told(&self, answer: Result<Value, DriverError>, place: &Place<'_>) -> Result<Value, SendError> {
        if let Err(error) = &answer {
            self.look_into(error);
        }
        answer.map_err(|error| place.blame(error))
    }

    fn options(&self, within: Duration, node: Option<Server>) -> Options {
        let client = &self.client;
        // A client that follows redirections by itself needs a try for each; `fail_fast` keeps it from using them
        // after a lost connection.
        let follows = client.is_clustered() && client.connection_config().max_redirections > 0;
        Options {
            max_attempts: Some(if follows { 4 } else { 1 }),
            fail_fast: follows,
            timeout: Some(within),
            cluster_node: node,
            ..Options::default()
        }
    }

    fn place(&self) -> Result<Place<'_>> {
        let before = self.in_flight.fetch_add(1, Ordering::AcqRel);
        let place = Place(&self.in_flight);
        if before < MOST_IN_FLIGHT {
            return Ok(place);
        }
        let detail = format!("{MOST_IN_FLIGHT} commands are waiting for their answers");
        Err(Error::new(ErrorKind::Unavailable, "ask Redis").detail(detail))
    }

    /// Has the connection looked after, if the error is a reason to.
    pub(crate) fn look_into(&self, error: &DriverError) {
        let Some(supervisor) = &self.supervisor else { return };
        match error::refusal(error) {
            Some(refusal) if refusal.is_of_a_wrong_server() => supervisor.probe(ProbeReason::WrongServer),
            None if *error.kind() == DriverKind::Timeout => supervisor.probe(ProbeReason::Silence),
            _ => {}
        }
    }
}

/// One of the commands that wait for their answers.
struct Place<'c>(&'c AtomicUsize);

impl Place<'_> {
    /// When the driver drops a connection over a refusal, it tells all commands in flight the same, also those that
    /// the server may have carried out.
    fn blame(&self, error: DriverError) -> SendError {
        let alone = self.0.load(Ordering::Acquire) == 1;
        if !alone && error::refusal(&error).is_some_and(error::Refusal::is_told_to_all) {
            let told =
                DriverError::new(DriverKind::Canceled, format!("The connection ended with: {}", error.details()));
            return SendError::Sent(told);
        }
        SendError::Sent(error)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_commands_wait_for_their_answers() {
        let link = Link::borrow(Client::default());
        link.in_flight.store(MOST_IN_FLIGHT - 1, Ordering::Release);
        let last = link.place().expect("there is room for one");
        let error = link.place().map(drop).expect_err("there is room for none");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("10000 commands"), "{error}");
        drop(last);
        assert!(link.place().is_ok());
        assert_eq!(link.in_flight.load(Ordering::Acquire), MOST_IN_FLIGHT - 1);
    }

    #[test]
    fn a_refusal_is_believed_unless_it_was_told_to_others_who_wait_too() {
        let link = Link::borrow(Client::default());
        let told = |text: &'static str, others: bool| {
            let place = link.place().expect("there is room");
            let other = others.then(|| link.place().expect("there is room"));
            let SendError::Sent(error) = place.blame(DriverError::new(DriverKind::Unknown, text)) else {
                panic!("{text}")
            };
            drop(other);
            error
        };
        for (text, others, expected) in [
            ("READONLY no", false, DriverKind::Unknown),
            ("READONLY no", true, DriverKind::Canceled),
            ("NOPERM no", true, DriverKind::Unknown),
            ("broken", true, DriverKind::Unknown),
        ] {
            let error = told(text, others);
            assert_eq!(*error.kind(), expected, "{text} {others}");
            assert!(error.details().contains(text), "{error}");
        }
    }
}

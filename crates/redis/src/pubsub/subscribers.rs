use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use leasehold_core::{Notification, OwnerId};
use tokio::sync::{mpsc, watch};

use crate::keyspace::names::Namespace;
use crate::keyspace::number::read_epoch;

/// How many grants are kept for subscriptions that begin later: the answer to a claim and the message of its grant travel on
/// two connections. A waiter whose grant was dropped learns of it when it repeats its claim.
pub(super) const KEPT: usize = 64;

/// The channel of a namespace on which all processes hear of which locks were taken from their holders by force.
pub(crate) fn forced_channel(namespace: &Namespace) -> String {
    namespace.own("forced")
}

/// The subscriptions of this process, by topic. A topic is a channel, or, where there is an inbox, the name of a key's part.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    state: Mutex<State>,
    /// `None`: every topic is a channel of its own.
    inbox: Option<Inbox>,
    /// Whether the server has confirmed a subscription and messages come in.
    open: AtomicBool,
}

/// The one channel on which grants come in.
#[derive(Debug)]
struct Inbox {
    channel: String,
    /// The channel that the inboxes of all processes share: the topics of which a lock was taken from its holder by force.
    forced: String,
    /// Topics are the names of this part of the keys.
    namespace: Namespace,
    part: &'static str,
    /// Whether the grant in a message is believed. If not, a message is only a reason to ask.
    trusted: bool,
}

#[derive(Debug, Default)]
struct State {
    topics: HashMap<String, watch::Sender<Notification>>,
    /// Grants that nobody listened for, by topic.
    early: VecDeque<(String, Notification)>,
    /// Receives the channels to which no subscription is left, so that the server is asked to forget them.
    left: Option<mpsc::UnboundedSender<String>>,
}

impl Subscribers {
    pub(super) fn with_inbox(channel: String, namespace: Namespace, part: &'static str, trusted: bool) -> Self {
        let forced = forced_channel(&namespace);
        Self { inbox: Some(Inbox { channel, forced, namespace, part, trusted }), ..Self::default() }
    }

    /// What receives the notifications of a topic, from now on; the first is a grant that came before, if one did.
    pub(super) fn join(&self, topic: &str) -> watch::Receiver<Notification> {
        let mut state = self.state();
        let early = state.early.iter().position(|(of, _)| of == topic).and_then(|place| state.early.remove(place));
        let sender = state.topics.entry(topic.to_owned()).or_insert_with(|| watch::Sender::new(Notification::Freed));
        let notifications = sender.subscribe();
        if let Some((_, notification)) = early {
            sender.send_replace(notification);
        }
        notifications
    }

    /// Ends what [`join`](Self::join) began, and has the server forget a channel to which no subscription is left.
    pub(super) fn leave(&self, topic: &mut String, notifications: &mut Option<watch::Receiver<Notification>>) {
        let mut state = self.state();
        *notifications = None;
        if state.topics.get(topic).is_some_and(|sender| sender.receiver_count() == 0) {
            state.topics.remove(topic);
            if let Some(left) = state.left.as_ref().filter(|_| self.inbox.is_none()) {
                // Without a connection there is no subscription to end.
                let _ = left.send(std::mem::take(topic));
            }
        }
    }

    /// The channels that have to be subscribed to.
    pub(super) fn channels(&self) -> Vec<String> {
        match &self.inbox {
            Some(inbox) => vec![inbox.channel.clone(), inbox.forced.clone()],
            None => self.state().topics.keys().cloned().collect(),
        }
    }

    pub(super) fn is_wanted(&self, channel: &str) -> bool {
        match &self.inbox {
            Some(inbox) => inbox.channel == channel || inbox.forced == channel,
            None => self.state().topics.contains_key(channel),
        }
    }

    /// The channel on which the messages about a topic are published.
    pub(super) fn channel_of(&self, topic: &str) -> String {
        self.inbox.as_ref().map_or(topic, |inbox| &inbox.channel).to_owned()
    }

    pub(super) fn inbox(&self) -> Option<&str> {
        self.inbox.as_ref().filter(|_| self.open.load(Ordering::Acquire)).map(|inbox| &*inbox.channel)
    }

    pub(super) fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::Release);
    }

    pub(super) fn report_left(&self, left: mpsc::UnboundedSender<String>) {
        self.state().left = Some(left);
    }

    pub(super) fn received(&self, channel: &str, message: &str) {
        let Some(inbox) = &self.inbox else { return self.notify(channel, Notification::Freed) };
        if channel == inbox.forced {
            // A reason to ask for those who listen, and nothing to keep.
            return self.tell(message, Notification::Freed);
        }
        let mut parts = message.splitn(3, ' ');
        let (owner, epoch) = (parts.next().and_then(OwnerId::parse_hex), parts.next().unwrap_or_default());
        let (Some(owner), Some(topic)) = (owner, parts.next()) else { return };
        match read_epoch(epoch) {
            Some(epoch) if inbox.trusted => self.notify(topic, Notification::Granted { owner, epoch: Some(epoch) }),
            Some(_) => self.notify(topic, Notification::Freed),
            // There is no epoch at this moment: the waiter is to ask for one.
            None if epoch == "-" => self.notify(topic, Notification::Freed),
            None => {}
        }
    }

    fn tell(&self, topic: &str, notification: Notification) {
        if let Some(sender) = self.state().topics.get(topic) {
            sender.send_replace(notification);
        }
    }

    fn notify(&self, topic: &str, notification: Notification) {
        let mut state = self.state();
        if let Some(sender) = state.topics.get(topic) {
            sender.send_replace(notification);
        } else if self.inbox.as_ref().is_some_and(|inbox| inbox.namespace.key(topic, inbox.part).is_some()) {
            // Only a name that a claim of ours could have: anybody may publish here, and at any length.
            state.early.retain(|(of, _)| of != topic);
            state.early.truncate(KEPT - 1);
            state.early.push_front((topic.to_owned(), notification));
        }
    }

    /// Ends all subscriptions: the connection is gone.
    pub(super) fn end(&self) {
        self.set_open(false);
        self.state().topics.clear();
    }

    pub(super) fn wake_all(&self) {
        for sender in self.state().topics.values() {
            sender.send_replace(Notification::Freed);
        }
    }

    /// The topics of the grants that nobody listened for.
    #[cfg(test)]
    pub(super) fn early(&self) -> Vec<String> {
        self.state().early.iter().map(|(topic, _)| topic.clone()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

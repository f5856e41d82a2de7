use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::select_all;
use leasehold_core::{Error, LockKey, Notification, Notifications, Result, Subscription};
use tokio::time::{Instant, sleep_until};

use crate::error::Failure;
use crate::nodes::{Answers, Nodes};

/// The notifications of releases, from every node that can be reached.
///
/// A release notifies on a majority of the nodes, and a subscription covers a majority, so that at least one notification
/// arrives.
#[derive(Debug)]
pub(crate) struct QuorumNotifications(pub(crate) Arc<Nodes>);

type Subscribed = Result<Box<dyn Subscription>, Failure>;

/// How long the other nodes are waited for after the first notification: an attempt before a majority is free is in vain.
const TOGETHER: Duration = Duration::from_millis(5);

#[async_trait]
impl Notifications for QuorumNotifications {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let nodes = &self.0;
        let mut joining: Answers<Subscribed> = nodes.ask(|node| {
            let key = key.clone();
            async move {
                let peer = node.peer()?;
                peer.subscribe(&key).await.map_err(|error: Error| error.into())
            }
        });
        let (mut open, mut failed) = (Vec::new(), Vec::new());
        while open.len() < nodes.majority() {
            match joining.next().await {
                Some((index, Ok(subscription))) => open.push((index, subscription)),
                Some((index, Err(failure))) => failed.push((index, failure)),
                None => return Err(nodes.quorum_not_reached(open.len(), failed).into_error("listen for releases")),
            }
        }
        Ok(Box::new(QuorumSubscription::new(nodes.majority(), open, joining)))
    }
}

/// The subscription of one waiter to one key: one subscription for each node.
struct QuorumSubscription {
    majority: usize,
    open: Vec<(usize, Box<dyn Subscription>)>,
    /// Slow nodes, which are open as soon as they confirm the subscription.
    joining: Answers<Subscribed>,
    /// The nodes that have notified since the last notification to the waiter.
    notified: BTreeSet<usize>,
    /// The nodes whose next notification belongs to the last notification to the waiter.
    late: BTreeSet<usize>,
}

impl QuorumSubscription {
    fn new(majority: usize, open: Vec<(usize, Box<dyn Subscription>)>, joining: Answers<Subscribed>) -> Self {
        Self { majority, open, joining, notified: BTreeSet::new(), late: BTreeSet::new() }
    }

    /// Begins anew after a notification to the waiter.
    fn reset(&mut self) {
        self.late = self.open.iter().map(|(index, _)| *index).filter(|index| !self.notified.contains(index)).collect();
        self.notified.clear();
    }

    /// The next thing that happens, by `latest` if there is such a moment. Cancel safe.
    async fn next_event(&mut self, latest: Option<Instant>) -> Event {
        let notified = &self.notified;
        let quiet = self.open.iter_mut().filter(|(index, _)| !notified.contains(index));
        let notifications = quiet.map(|(index, subscription)| {
            Box::pin(async move {
                match subscription.next().await {
                    Notification::Ended => Event::Ended(*index),
                    _ => Event::Notified(*index),
                }
            })
        });
        tokio::select! {
            (event, ..) = select_all(notifications) => event,
            Some((index, subscribed)) = self.joining.next() => Event::Joined(index, subscribed),
            () = sleep_until(latest.unwrap_or_else(Instant::now)), if latest.is_some() => Event::TimeOut,
        }
    }
}

/// What happens to a subscription.
enum Event {
    Notified(usize),
    Ended(usize),
    Joined(usize, Subscribed),
    TimeOut,
}

#[async_trait]
impl Subscription for QuorumSubscription {
    async fn next(&mut self) -> Notification {
        let mut latest = None;
        // At least a majority is open, so one of the open subscriptions is always quiet.
        while self.notified.len() < self.majority {
            if !self.notified.is_empty() && latest.is_none() {
                latest = Some(Instant::now() + TOGETHER);
            }
            match self.next_event(latest).await {
                Event::Notified(index) if self.late.remove(&index) => {}
                Event::Notified(index) => {
                    self.notified.insert(index);
                }
                Event::Ended(index) => {
                    self.open.retain(|(open, _)| *open != index);
                    if self.open.len() < self.majority {
                        return Notification::Ended;
                    }
                }
                Event::Joined(index, Ok(subscription)) => self.open.push((index, subscription)),
                Event::Joined(_, Err(_)) => {}
                Event::TimeOut => break,
            }
        }
        self.reset();
        Notification::Freed
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::watch;

    use super::*;

    struct OneNode(watch::Receiver<()>);

    #[async_trait]
    impl Subscription for OneNode {
        async fn next(&mut self) -> Notification {
            if self.0.changed().await.is_ok() { Notification::Freed } else { Notification::Ended }
        }
    }

    fn five() -> (Vec<watch::Sender<()>>, QuorumSubscription) {
        let nodes: Vec<_> = (0..5).map(|_| watch::Sender::new(())).collect();
        let open = nodes.iter().map(|node| Box::new(OneNode(node.subscribe())) as Box<dyn Subscription>);
        let subscription = QuorumSubscription::new(3, open.enumerate().collect(), Answers::new());
        (nodes, subscription)
    }

    #[tokio::test(start_paused = true)]
    async fn a_majority_notifies_at_once_and_the_late_nodes_do_not_notify_again() {
        let (nodes, mut subscription) = five();
        assert!(subscription.next().now_or_never().is_none());
        nodes[..3].iter().for_each(|node| node.send_replace(()));
        assert!(subscription.next().now_or_never().is_some());
        nodes[3..].iter().for_each(|node| node.send_replace(()));
        assert!(tokio::time::timeout(Duration::from_secs(60), subscription.next()).await.is_err());
        nodes[1..4].iter().for_each(|node| node.send_replace(()));
        assert!(subscription.next().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_no_majority_is_subscribed_to_any_more() {
        let (mut nodes, mut subscription) = five();
        nodes.truncate(3);
        for node in &nodes {
            node.send_replace(());
        }
        assert_eq!(subscription.next().await, Notification::Freed);
        assert!(subscription.next().now_or_never().is_none());
        nodes.truncate(2);
        assert_eq!(subscription.next().await, Notification::Ended);
    }

    #[tokio::test(start_paused = true)]
    async fn one_node_notifies_after_a_moment() {
        let (nodes, mut subscription) = five();
        nodes[4].send_replace(());
        assert!(subscription.next().now_or_never().is_none());
        tokio::time::timeout(Duration::from_secs(1), subscription.next()).await.unwrap();
    }
}

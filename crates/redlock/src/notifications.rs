use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::select_all;
use leasehold_core::{Error, LockKey, Notification, Notifications, Result, Subscription};
use tokio::time::{Instant, sleep_until};

use crate::condition::Failure;
use crate::fleet::{Asked, Fleet};

/// Signals of releases, heard on every node that can be reached.
///
/// A release is signalled by a majority of the nodes, and a majority is listened to, so that at least one is heard.
#[derive(Debug)]
pub(crate) struct QuorumSignals(pub(crate) Arc<Fleet>);

type Heard = Result<Box<dyn Subscription>, Failure>;

/// After the first node that signals, how long the others are waited for: an attempt before a majority is free is in
/// vain.
const TOGETHER: Duration = Duration::from_millis(5);

#[async_trait]
impl Notifications for QuorumSignals {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let fleet = &self.0;
        let mut joining: Asked<Heard> = fleet.ask(|node| {
            let key = key.clone();
            async move {
                let signals = node.peer()?.signals;
                signals.subscribe(&key).await.map_err(|error: Error| error.into())
            }
        });
        let (mut ears, mut failed) = (Vec::new(), Vec::new());
        while ears.len() < fleet.majority() {
            match joining.next().await {
                Some((index, Ok(ear))) => ears.push((index, ear)),
                Some((index, Err(failure))) => failed.push((index, failure)),
                None => return Err(fleet.quorum_not_reached(ears.len(), failed).into_error("listen for releases")),
            }
        }
        let majority = fleet.majority();
        Ok(Box::new(Ears { majority, open: ears, joining, heard: BTreeSet::new(), echoes: BTreeSet::new() }))
    }
}

/// One waiter's ears, one for each node.
struct Ears {
    majority: usize,
    open: Vec<(usize, Box<dyn Subscription>)>,
    /// Slow nodes, to be listened to as soon as they confirm.
    joining: Asked<Heard>,
    /// The nodes that signalled since the last hint.
    heard: BTreeSet<usize>,
    /// The nodes whose next signal belongs to the last hint.
    echoes: BTreeSet<usize>,
}

impl Ears {
    fn hinted(&mut self) {
        self.echoes = self.open.iter().map(|(index, _)| *index).filter(|index| !self.heard.contains(index)).collect();
        self.heard.clear();
    }
}

enum Event {
    Signal(usize),
    Ended(usize),
    Joined(usize, Heard),
    Enough,
}

impl Ears {
    /// The next thing that happens, by `latest` if there is such a moment. Cancel safe.
    async fn next_event(&mut self, latest: Option<Instant>) -> Event {
        let heard = &self.heard;
        let unheard = self.open.iter_mut().filter(|(index, _)| !heard.contains(index));
        let signals = unheard.map(|(index, ear)| {
            Box::pin(async move {
                match ear.next().await {
                    Notification::Ended => Event::Ended(*index),
                    _ => Event::Signal(*index),
                }
            })
        });
        tokio::select! {
            (event, ..) = select_all(signals) => event,
            Some((index, joined)) = self.joining.next() => Event::Joined(index, joined),
            () = sleep_until(latest.unwrap_or_else(Instant::now)), if latest.is_some() => Event::Enough,
        }
    }
}

#[async_trait]
impl Subscription for Ears {
    async fn next(&mut self) -> Notification {
        let mut latest = None;
        // There are more ears than that, so one of them is always open.
        while self.heard.len() < self.majority {
            if !self.heard.is_empty() && latest.is_none() {
                latest = Some(Instant::now() + TOGETHER);
            }
            match self.next_event(latest).await {
                Event::Signal(index) if self.echoes.remove(&index) => {}
                Event::Signal(index) => {
                    self.heard.insert(index);
                }
                Event::Ended(index) => {
                    self.open.retain(|(open, _)| *open != index);
                    if self.open.len() < self.majority {
                        return Notification::Ended;
                    }
                }
                Event::Joined(index, Ok(ear)) => self.open.push((index, ear)),
                Event::Joined(_, Err(_)) => {}
                Event::Enough => break,
            }
        }
        self.hinted();
        Notification::Freed
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::watch;

    use super::*;

    struct Ear(watch::Receiver<()>);

    #[async_trait]
    impl Subscription for Ear {
        async fn next(&mut self) -> Notification {
            if self.0.changed().await.is_ok() { Notification::Freed } else { Notification::Ended }
        }
    }

    fn five() -> (Vec<watch::Sender<()>>, Ears) {
        let nodes: Vec<_> = (0..5).map(|_| watch::Sender::new(())).collect();
        let ears =
            nodes.iter().map(|node| Box::new(Ear(node.subscribe())) as Box<dyn Subscription>).enumerate().collect();
        let ears =
            Ears { majority: 3, open: ears, joining: Asked::new(), heard: BTreeSet::new(), echoes: BTreeSet::new() };
        (nodes, ears)
    }

    #[tokio::test(start_paused = true)]
    async fn a_majority_is_a_hint_at_once_and_its_echoes_are_none() {
        let (nodes, mut ears) = five();
        assert!(ears.next().now_or_never().is_none());
        nodes[..3].iter().for_each(|node| node.send_replace(()));
        assert!(ears.next().now_or_never().is_some());
        nodes[3..].iter().for_each(|node| node.send_replace(()));
        assert!(tokio::time::timeout(Duration::from_secs(60), ears.next()).await.is_err());
        nodes[1..4].iter().for_each(|node| node.send_replace(()));
        assert!(ears.next().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_no_majority_is_listened_to_any_more() {
        let (mut nodes, mut ears) = five();
        nodes.truncate(3);
        for node in &nodes {
            node.send_replace(());
        }
        assert_eq!(ears.next().await, Notification::Freed);
        assert!(ears.next().now_or_never().is_none());
        nodes.truncate(2);
        assert_eq!(ears.next().await, Notification::Ended);
    }

    #[tokio::test(start_paused = true)]
    async fn one_node_is_a_hint_after_a_moment() {
        let (nodes, mut ears) = five();
        nodes[4].send_replace(());
        assert!(ears.next().now_or_never().is_none());
        tokio::time::timeout(Duration::from_secs(1), ears.next()).await.unwrap();
    }
}

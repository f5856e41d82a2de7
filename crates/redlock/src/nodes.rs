use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use leasehold_core::clock::Moment;

use crate::error::{Failure, QuorumNotReached};
use crate::majority::majority;
use crate::node::Node;
use crate::node_state::NodeState;
use crate::numbers::proposal;

/// The nodes of a deployment, in the order in which they were given.
#[derive(Debug)]
pub(crate) struct Nodes(Vec<Arc<Node>>);

/// Answers of several nodes as they come, each with the index of its node.
pub(crate) type Answers<T> = FuturesUnordered<BoxFuture<'static, (usize, T)>>;

impl Nodes {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        Self(nodes.into_iter().map(Arc::new).collect())
    }

    /// All nodes, also those that do not take part in votes.
    pub(crate) fn all(&self) -> &[Arc<Node>] {
        &self.0
    }

    pub(crate) fn indices(&self) -> BTreeSet<usize> {
        (0..self.0.len()).collect()
    }

    pub(crate) fn majority(&self) -> usize {
        majority(self.0.len())
    }

    /// The number to propose to the nodes of which answers may be expected within `limit`; 0 if too few clocks are known.
    pub(crate) fn proposal(&self, limit: Duration, now: Moment) -> u64 {
        let expected = self.0.iter().filter(|node| node.is_expected_within(limit));
        proposal(self.0.len(), expected.filter_map(|node| node.its_clock.at(now))).unwrap_or_default()
    }

    /// The nodes of which answers may be expected within `limit`.
    pub(crate) fn expected(&self, limit: Duration) -> BTreeSet<usize> {
        let mut expected = self.indices();
        expected.retain(|index| self.0[*index].is_expected_within(limit));
        expected
    }

    /// Asks all nodes at once. Nothing is sent before the answers are polled.
    pub(crate) fn ask<T, F>(&self, question: impl Fn(Arc<Node>) -> F) -> Answers<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.ask_some(0..self.0.len(), question)
    }

    /// Asks the nodes at these indices at once. Nothing is sent before the answers are polled.
    pub(crate) fn ask_some<T, F>(
        &self,
        indices: impl IntoIterator<Item = usize>,
        question: impl Fn(Arc<Node>) -> F,
    ) -> Answers<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let ask = |index: usize| {
            let answer = question(Arc::clone(&self.0[index]));
            Box::pin(async move { (index, answer.await) }) as BoxFuture<'static, _>
        };
        indices.into_iter().map(ask).collect()
    }

    /// The error for an operation to which only `answered` nodes gave an answer that counts.
    pub(crate) fn quorum_not_reached(&self, answered: usize, mut failures: Vec<(usize, Failure)>) -> QuorumNotReached {
        failures.sort_by_key(|(index, _)| *index);
        let state = |(index, failure): (usize, Failure)| NodeState::new(&self.0[index].name, failure.condition);
        QuorumNotReached {
            answered,
            needed: self.majority(),
            nodes: self.0.len(),
            failures: failures.into_iter().map(state).collect(),
        }
    }
}

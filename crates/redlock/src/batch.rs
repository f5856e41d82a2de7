use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use leasehold_core::clock::Moment;
use leasehold_core::{Clock, OwnerId};
use leasehold_redis::{KeyNames, ScriptArguments};
use tokio::sync::oneshot::Sender;
use tokio::task::yield_now;

use crate::answer::{BatchAnswers, Claimed};
use crate::attempt::RegisteredAttempt;
use crate::background_tasks::BackgroundTasks;
use crate::error::Failure;
use crate::node::{FENCE, FORCED, LOCK};
use crate::node_state::NodeCondition;
use crate::nodes::Nodes;
use crate::numbers::Decision;
use crate::pending_releases::{PendingRelease, PendingReleases};
use crate::tally::Tally;
use crate::vote::Vote;

/// What batches need beside their steps.
pub(crate) struct Context {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) releases: Arc<PendingReleases>,
    pub(crate) background: Arc<BackgroundTasks>,
    pub(crate) clock: Clock,
    pub(crate) fencing: bool,
    /// The name of the marker.
    pub(crate) marker: String,
    /// How long a counter is kept.
    pub(crate) fence_retention: Duration,
}

/// One step of an operation that goes to all nodes.
pub(crate) enum Step {
    Claim(Claim),
    Release(Release),
}

/// A claim, until the last node has answered.
pub(crate) struct Claim {
    pub(crate) attempt: Arc<RegisteredAttempt>,
    /// When what nodes grant is over in any case.
    pub(crate) until: Moment,
    pub(crate) state: ClaimState,
}

/// A release, until the last node has answered.
pub(crate) struct Release {
    pub(crate) names: KeyNames,
    pub(crate) owner: OwnerId,
    /// From then on it is not worth sending again.
    pub(crate) until: Moment,
    pub(crate) limit: Duration,
    pub(crate) tally: Tally,
    pub(crate) answer: Option<Sender<Tally>>,
}

pub(crate) enum ClaimState {
    Open(Vote, Sender<Verdict>),
    Decided(Option<Decision>),
}

/// A vote that is decided, and the number that it makes, if it won and grants have numbers.
pub(crate) type Verdict = (Vote, Option<Decision>);

/// Steps that go to all nodes together, and what the nodes have answered.
pub(crate) struct Batch {
    context: Arc<Context>,
    claims: Vec<Claim>,
    releases: Vec<Release>,
    limit: Duration,
}

/// The keys, and behind them the arguments, of the script, and how many releases and claims there are.
#[derive(Clone)]
struct Encoded {
    keys: usize,
    arguments: ScriptArguments,
    count: (usize, usize),
}

/// A node's answers on their way, with its index.
type AnswerOfNode = BoxFuture<'static, (usize, Result<BatchAnswers, Failure>)>;

impl Step {
    /// How long the nodes have for it.
    pub(crate) fn limit(&self) -> Duration {
        match self {
            Self::Claim(claim) => claim.attempt.attempt().limit,
            Self::Release(release) => release.limit,
        }
    }

    /// Whether it has to be sent: a claim only if somebody waits for it.
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self, Self::Claim(Claim { state: ClaimState::Open(_, answer), .. }) if answer.is_closed())
    }
}

impl Batch {
    pub(crate) fn new(context: Arc<Context>, steps: Vec<Step>) -> Self {
        let limit = steps.first().map(Step::limit).unwrap_or_default();
        let (mut claims, mut releases) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Claim(claim) => claims.push(claim),
                Step::Release(release) => releases.push(release),
            }
        }
        Self { context, claims, releases, limit }
    }

    /// Asks all nodes, and sees to every answer. `flight` drops when a majority has answered.
    pub(crate) async fn run(mut self, flight: impl Send) {
        let mut flight = Some(flight);
        let nodes = Arc::clone(&self.context.nodes);
        let together = [self.encode(0..self.releases.len(), 0..self.claims.len())];
        let ask = |node: usize| self.ask(node, together.to_vec());
        let mut answers: FuturesUnordered<_> = (0..nodes.all().len()).map(ask).collect();
        let expected = nodes.expected(self.limit);
        for claim in &mut self.claims {
            if let ClaimState::Open(vote, _) = &mut claim.state {
                *vote = Vote::begin(nodes.indices(), expected.clone());
            }
        }
        let mut answered = 0;
        while let Some(first) = answers.next().await {
            let mut come = Some(first);
            // What has come by now counts, too.
            while let Some((index, answer)) = come {
                if let Some(each) = self.each_if_refused(index, &answer) {
                    answers.push(each);
                } else {
                    self.count(index, answer);
                    answered += 1;
                }
                come = answers.next().now_or_never().flatten();
            }
            self.tell(answers.is_empty());
            if answered >= nodes.majority() && flight.is_some() {
                // The callers that just got their answers may call again at once, and are then sent together again.
                yield_now().await;
                flight = None;
            }
        }
    }

    /// Sends scripts to a node, one after the other, and puts their answers together.
    fn ask(&self, index: usize, scripts: Vec<Encoded>) -> AnswerOfNode {
        let (node, limit) = (Arc::clone(&self.context.nodes.all()[index]), self.limit);
        Box::pin(async move {
            let is_alone = scripts.len() == 1;
            let mut answers = BatchAnswers::default();
            for Encoded { keys, arguments, count } in scripts {
                match node.run_batch(keys, arguments, count, limit).await {
                    Ok(more) => answers.extend(more),
                    Err(failure) if is_alone => return (index, Err(failure)),
                    Err(failure) => answers.extend(BatchAnswers::all(&failure, count)),
                }
            }
            (index, Ok(answers))
        })
    }

    /// Asks the node for each step alone, if it refused them together: perhaps for the keys of one of them.
    fn each_if_refused(&self, index: usize, answer: &Result<BatchAnswers, Failure>) -> Option<AnswerOfNode> {
        let is_refused = answer.as_ref().is_err_and(Failure::is_refused);
        if !is_refused || self.releases.len() + self.claims.len() < 2 {
            return None;
        }
        let releases = (0..self.releases.len()).map(|one| self.encode(one..one + 1, 0..0));
        let claims = (0..self.claims.len()).map(|one| self.encode(0..0, one..one + 1));
        Some(self.ask(index, releases.chain(claims).collect()))
    }

    /// Some of the steps, as the script takes them.
    fn encode(&self, releases: Range<usize>, claims: Range<usize>) -> Encoded {
        let (context, count) = (&self.context, (releases.len(), claims.len()));
        let (releases, claims) = (&self.releases[releases], &self.claims[claims]);
        let requests = || claims.iter().map(|claim| &claim.attempt.attempt().request);
        let mut all = ScriptArguments::default().text(&context.marker);
        // What is read at once, one after the other.
        all = releases.iter().fold(all, |all, release| all.name(&release.names, LOCK));
        if context.fencing {
            all = requests().fold(all, |all, request| all.name(&request.names, FENCE));
        }
        all = requests().fold(all, |all, request| all.name(&request.names, LOCK));
        all = releases.iter().fold(all, |all, release| all.name(&release.names, FORCED));
        let keys = 1 + 2 * count.0 + count.1 * (1 + usize::from(context.fencing));
        all = all.text(count.0);
        all = if context.fencing {
            all.text(context.nodes.proposal(self.limit, context.clock.now()))
        } else {
            all.text("-")
        };
        all = all.text(context.fence_retention.as_millis());
        all = releases.iter().fold(all, |all, release| all.text(release.owner.to_hex()));
        let mut before = None;
        for request in requests() {
            let (owner, like) = (request.owner.to_hex(), Some((request.lease, &request.metadata)));
            all = if like == before {
                all.text(owner)
            } else {
                all.text(format_args!("{owner} {} {}", request.lease.as_millis(), request.metadata))
            };
            before = like;
        }
        Encoded { keys, arguments: all, count }
    }

    fn count(&mut self, index: usize, answer: Result<BatchAnswers, Failure>) {
        let mut answers =
            answer.map(|BatchAnswers { releases, claims, .. }| (releases.into_iter(), claims.into_iter()));
        for release in &mut self.releases {
            let answer = match &mut answers {
                Ok((releases, _)) => releases.next().unwrap_or_else(|| Err(unread())),
                Err(failure) => Err(failure.clone()),
            };
            if answer.as_ref().is_err_and(Failure::is_transient) {
                self.context.releases.add(index, release.again());
            }
            release.tally.add(index, answer);
        }
        for claim in &mut self.claims {
            let answer = match &mut answers {
                Ok((_, claims)) => claims.next().unwrap_or_else(|| Claimed::Failed(unread())),
                Err(failure) => Claimed::Failed(failure.clone()),
            };
            match &mut claim.state {
                ClaimState::Open(vote, _) => vote.add(index, answer),
                ClaimState::Decided(decision) => {
                    let decision = *decision;
                    claim.came_late(&self.context, index, &answer, decision);
                }
            }
        }
    }

    /// Tells those whose outcome is decided.
    fn tell(&mut self, is_complete: bool) {
        let majority = self.context.nodes.majority();
        for release in &mut self.releases {
            if (is_complete || !release.tally.is_open(majority))
                && let Some(answer) = release.answer.take()
            {
                let _ = answer.send(std::mem::take(&mut release.tally));
            }
        }
        for Claim { attempt, state, .. } in &mut self.claims {
            if !matches!(state, ClaimState::Open(vote, _) if is_complete || !vote.is_open()) {
                continue;
            }
            let ClaimState::Open(mut vote, answer) = std::mem::replace(state, ClaimState::Decided(None)) else {
                continue;
            };
            let decision = (self.context.fencing && vote.is_won()).then(|| vote.number());
            // Before anybody can answer late.
            if !vote.is_won() || decision == Some(Decision::Early) {
                attempt.attempt().end();
            }
            *state = ClaimState::Decided(decision);
            // They are followed here.
            vote.unanswered.clear();
            let _ = answer.send((vote, decision));
        }
    }
}

impl Claim {
    /// What a node answers when the vote is decided: what it grants is confirmed too, or released if the attempt is over.
    fn came_late(&self, context: &Arc<Context>, index: usize, answer: &Claimed, decision: Option<Decision>) {
        let attempt = self.attempt.attempt();
        let Claimed::Granted(told) = answer else {
            if answer.may_be_granted() {
                context.releases.add(index, PendingRelease::of_late_claim(&self.attempt, self.until));
            }
            return;
        };
        if attempt.granted_late(index) {
            context.releases.add(index, PendingRelease::of(attempt, self.until));
            return;
        }
        let Some((number, ahead)) = decision.and_then(written).filter(|(number, _)| told.number != Some(*number))
        else {
            return;
        };
        let (node, registered) = (Arc::clone(&context.nodes.all()[index]), Arc::clone(&self.attempt));
        context.background.run(async move {
            let attempt = registered.attempt();
            node.confirm(&attempt.request, number, ahead, attempt.limit).await;
        });
    }
}

impl Release {
    fn again(&self) -> PendingRelease {
        PendingRelease { owner: self.owner, names: self.names.clone(), signal: true, until: self.until, late: None }
    }
}

/// The number of an attempt, and how far it may be ahead of the nodes' clocks.
fn written(decision: Decision) -> Option<(u64, u64)> {
    match decision {
        Decision::Won(number) => Some((number, 0)),
        Decision::Write { number, ahead } => Some((number, ahead)),
        Decision::Early => None,
    }
}

/// What stands for an answer that is missing.
fn unread() -> Failure {
    Failure { maybe_done: true, ..Failure::of(NodeCondition::Refused("the node left a step out".into())) }
}

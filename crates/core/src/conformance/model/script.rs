//! What is asked: scripts of steps for one key, made at random.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Rng, Strategy, any, prop_oneof};
use proptest::strategy::{BoxedStrategy, Union};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::{Capabilities, Capability, Mode};

/// One move of a script. Clients, grants and texts are numbers that are counted round, so that a script that lost some of its moves
/// still has a meaning.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Claim {
        by: usize,
        mode: Mode,
        ttl: Ttl,
        of: Of,
        waits: bool,
        text: usize,
    },
    Renew(Vec<(Which, Ttl)>),
    Release {
        of: Which,
        /// As after a claim whose answer is not known.
        without_epoch: bool,
    },
    TakeOver {
        of: Which,
        by: usize,
        ttl: Ttl,
        /// Not this one, but a take-over that there was, so many before the last one.
        again: Option<usize>,
    },
    Downgrade {
        of: Which,
        ttl: Ttl,
        text: usize,
    },
    Force(Option<Which>),
    Inspect(usize),
    List(usize),
    /// Somebody waits for the key, hears how it becomes free, and gets it.
    Await {
        mode: Mode,
        ended: Ended,
        ttl: Ttl,
        beside: Beside,
    },
    /// So many wait in the line of the store, of whom one, perhaps a reader, may leave, and each is served in its turn.
    Line {
        waiting: usize,
        leaves: Option<(usize, Mode)>,
        ended: Ended,
        ttl: Ttl,
    },
    Wait(Until),
    /// A look or a claim in each millisecond about the end of a lease.
    Edge(usize, Poll),
    /// Steps at one moment.
    Meet(Vec<(Move, When)>),
}

/// When a step is sent that meets others.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// So many milliseconds after the first.
    Later(u64),
    /// As soon as the one in front of it is answered.
    Answered,
}

/// Whose claim it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    New,
    /// The owner of a grant that there was, so many before the last one.
    Earlier(usize),
    /// An owner that differs from that of the last grant in the last bit of this byte.
    Near(usize),
}

/// One of the grants that there were, counted from the last one, or one that is nearly it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Which {
    pub(super) back: usize,
    pub(super) near: Option<Near>,
}

/// In what a grant differs from one that there was.
#[derive(Clone, Copy, Debug)]
pub(super) enum Near {
    /// In the last bit of this byte of its owner id.
    Owner(usize),
    /// In its epoch: the next one, or the one before.
    NextEpoch,
    EpochBefore,
    /// In this bit of its epoch.
    Epoch(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// For so many milliseconds.
    Millis(u64),
    /// So many milliseconds after ten before the next end of a lease, if that is near.
    End(u64),
}

/// How what stands in the way of a waiter is ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ended {
    Released,
    /// As after a claim whose answer is not known.
    ReleasedWithoutEpoch,
    Forced,
    ForcedByToken,
    Downgraded,
}

/// Who listens beside a waiter: another client, the holder's, or the waiter's own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beside {
    Nobody,
    /// One who leaves before there is something to hear.
    Leaves(usize),
    /// One who has to hear it, too.
    Hears(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Poll {
    Claim(Mode),
    Inspect,
    List,
}

/// The length of a lease. No store has these as its steps, but for the longest that there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ttl(usize);

impl Ttl {
    /// The first of these are waited for.
    const MILLIS: [u64; 7] = [317, 1_049, 61_283, 179_300, 3_601_700, 86_399_993, 86_400_000];
    const WAITED_FOR: usize = 2;
    pub(super) const SHORT: Self = Self(0);

    /// As long as this store can time it.
    pub(super) fn of(self, claims: &Capabilities) -> Duration {
        let ttl = Duration::from_millis(Self::MILLIS[self.0]);
        let shortest = claims.shortest_ttl();
        if self.0 < Self::WAITED_FOR && shortest > ttl { shortest + ttl } else { ttl }
    }

    /// The longest end of a lease for which a script waits.
    pub(super) fn longest_wait(claims: &Capabilities) -> Duration {
        Self(Self::WAITED_FOR - 1).of(claims) + claims.lease_granularity()
    }

    fn any() -> impl Strategy<Value = Self> + Clone {
        prop_oneof![4 => Just(0), 2 => Just(1), 4 => 2..Self::MILLIS.len()].prop_map(Self)
    }
}

/// Label and reason of a claim.
pub(super) fn text(which: usize) -> Option<String> {
    // Blanks at an end are what a column of a fixed width loses.
    let texts = [
        "",
        "a|b,c;d:e=f\tg\u{1f}h\u{1}i",
        "a's \"text\" `of` {one: %s} $1 ?",
        "line\r\n\0\u{7f}\u{202e}end",
        " 😀 Ünïcödé e\u{301} ",
    ];
    // Both of a claim may be as long as they can be.
    match which % (texts.len() + 3) {
        0 => None,
        1 => Some("é".repeat(crate::LockOptions::MAX_TEXT_BYTES / 2)),
        // Of more characters, where a column counts those.
        2 => Some("x".repeat(crate::LockOptions::MAX_TEXT_BYTES)),
        other => Some(texts[other - 3].to_owned()),
    }
}

/// Endings of keys: each key has neighbours that look like it, or begin with it, and are asked at the same time. The last four pairs have
/// one hash, whatever stands before them: by the factors 31 and 33, by CRC-16 and by CRC-32.
pub(in crate::conformance) const ENDINGS: [&str; 39] = [
    "",
    "k",
    "K",
    "k ",
    " k",
    "k\t",
    "k\n",
    "k\\n",
    "k+",
    "k,|;:=k",
    "k\0",
    "é",
    "É",
    "e\u{301}",
    "ß",
    "ss",
    "ａ",
    "a",
    "\u{200b}k",
    "😀",
    "😁",
    "k%20",
    "k/",
    "k//",
    "k/.",
    "k/..",
    "{k}",
    "k'\"`;--",
    "k_%*?[a]\\",
    "k%2F",
    "k%00",
    "Aa",
    "BB",
    "Ab",
    "BA",
    "aacq",
    "apaa",
    "nidmovh",
    "bubanxn",
];

/// The script with this seed. How often it has each kind of move, if at all, is drawn for each script: of scripts that all have every
/// kind, few have much of one, as many readers at once (Groce et al., "Swarm testing", ISSTA 2012).
pub(super) fn script(seed: u64, claims: &Capabilities) -> (TestRunner, BoxedStrategy<Vec<Move>>) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, random);
    let drawn = Drawn(runner.rng().next_u64());
    (runner, vec(a_move(claims, drawn), 1..28).boxed())
}

/// What a script has much of: two bits for each choice.
struct Drawn(u64);

impl Drawn {
    fn of(&mut self, weights: [u32; 4]) -> u32 {
        let drawn = weights[(self.0 & 3) as usize];
        self.0 >>= 2;
        drawn
    }

    /// Whether there are moves of a kind, and how many.
    fn some(&mut self, weight: u32) -> u32 {
        weight * self.of([0, 1, 1, 4])
    }
}

fn a_move(claims: &Capabilities, mut drawn: Drawn) -> BoxedStrategy<Move> {
    let (shared, lease) = (claims.has(Capability::Shared), claims.has(Capability::Lease));
    let (sessions, detaches) = (claims.has(Capability::Reentrancy), claims.has(Capability::Detach));
    let readers = if shared { drawn.of([1, 1, 1, 9]) } else { 0 };
    let mode = one_of([(1, Just(Mode::Exclusive).boxed()), (readers, Just(Mode::Shared).boxed())]);
    let near = one_of([
        (6, Just(None).boxed()),
        (u32::from(!sessions), (0..16_usize).prop_map(|byte| Some(Near::Owner(byte))).boxed()),
        (
            u32::from(claims.has(Capability::Fencing)),
            prop_oneof![Just(Near::NextEpoch), Just(Near::EpochBefore), (0..47_u32).prop_map(Near::Epoch)]
                .prop_map(Some)
                .boxed(),
        ),
    ]);
    let back = prop_oneof![6 => Just(0), 2 => Just(1), 2 => 2..4_usize];
    let which = (back, near).prop_map(|(back, near)| Which { back, near });
    let (by, text) = (0..3_usize, 0..8_usize);

    let one_in = |weight: u32| proptest::bool::weighted(1.0 / f64::from(weight));
    let of = one_of([
        (6, Just(Of::New).boxed()),
        (2, (0..3_usize).prop_map(Of::Earlier).boxed()),
        (u32::from(!sessions), (0..16_usize).prop_map(Of::Near).boxed()),
    ]);
    // Where no waiter leaves a mark, a claim that waits is like any other.
    let waits = !claims.has(Capability::Queue) && !claims.has(Capability::WriterIntent);
    let waits = any::<bool>().prop_map(move |one| one && waits);
    let claim = (by.clone(), mode.clone(), Ttl::any(), of, waits, text.clone())
        .prop_map(|(by, mode, ttl, of, waits, text)| Move::Claim { by, mode, ttl, of, waits, text });
    let release = (which.clone(), one_in(4)).prop_map(|(of, without_epoch)| Move::Release { of, without_epoch });
    let again = one_in(3).prop_flat_map(|again| (Just(again), 0..2_usize));
    let again = again.prop_map(|(again, back)| again.then_some(back));
    let take_over = (which.clone(), by.clone(), Ttl::any(), again).prop_map(|(of, by, ttl, again)| Move::TakeOver {
        of,
        by,
        ttl,
        again,
    });
    let downgrade = (which.clone(), Ttl::any(), text).prop_map(|(of, ttl, text)| Move::Downgrade { of, ttl, text });
    let until = prop_oneof![3 => 0..40_u64, 1 => Just(150)].prop_map(Until::Millis);
    let until = prop_oneof![until, (0..70_u64).prop_map(Until::End)];
    let poll = prop_oneof![mode.clone().prop_map(Poll::Claim), Just(Poll::Inspect), Just(Poll::List)];
    let ended = prop_oneof![
        2 => Just(Ended::Released),
        1 => Just(Ended::ReleasedWithoutEpoch),
        1 => Just(Ended::Forced),
        1 => Just(Ended::ForcedByToken),
        // A release, where no writer keeps a reader waiting.
        3 => Just(Ended::Downgraded),
    ];
    let line = (2..5_usize, proptest::option::of((0..4_usize, mode.clone())), ended.clone(), Ttl::any())
        .prop_map(|(waiting, leaves, ended, ttl)| Move::Line { waiting, leaves, ended, ttl });
    let beside =
        prop_oneof![Just(Beside::Nobody), (0..3_usize).prop_map(Beside::Leaves), (0..3_usize).prop_map(Beside::Hears),];
    let awaits = (mode.clone(), ended, Ttl::any(), beside).prop_map(|(mode, ended, ttl, beside)| Move::Await {
        mode,
        ended,
        ttl,
        beside,
    });
    let when = |claimed: bool, weight: u32| if claimed { weight } else { 0 };
    let steps = [
        (8, claim.clone().boxed()),
        (drawn.some(4), vec((which.clone(), Ttl::any()), 1..4).prop_map(Move::Renew).boxed()),
        (drawn.some(4), release.boxed()),
        (drawn.some(when(detaches, 3)), take_over.boxed()),
        (drawn.some(when(shared, 3)), downgrade.boxed()),
        (drawn.some(2), proptest::option::of(which).prop_map(Move::Force).boxed()),
        (drawn.some(2), by.clone().prop_map(Move::Inspect).boxed()),
        (drawn.some(2), by.clone().prop_map(Move::List).boxed()),
    ];
    let later = prop_oneof![6 => Just(0), 2 => 1..6_u64].prop_map(When::Later);
    let after = prop_oneof![Just(When::Answered), (0..4_u64).prop_map(When::Later)];
    let meet = vec((one_of(steps.clone()), later.clone()), 2..4);
    // The last holder gives the key to the next one, while something else of its grant is under way.
    let last = Which { back: 0, near: None };
    let of_the_last = (0..5_usize, Ttl::any(), by.clone()).prop_map(move |(which, ttl, by)| match which {
        0 => Move::Renew(vec![(last, ttl)]),
        1 => Move::Release { of: last, without_epoch: false },
        2 if detaches => Move::TakeOver { of: last, by, ttl, again: None },
        3 if shared => Move::Downgrade { of: last, ttl, text: by },
        _ => Move::Force(Some(last)),
    });
    let passes = (of_the_last, later, claim.clone(), after).prop_map(move |(step, later, claim, after)| {
        vec![(step, When::Later(0)), (Move::Release { of: last, without_epoch: false }, later), (claim, after)]
    });
    let meet = prop_oneof![meet, passes].prop_map(Move::Meet);
    let others = [
        (when(claims.has(Capability::Wakeup), 2), awaits.boxed()),
        (when(claims.has(Capability::Queue), 2), line.boxed()),
        (when(lease, 3), until.prop_map(Move::Wait).boxed()),
        (when(lease, 2), (by, poll).prop_map(|(by, poll)| Move::Edge(by, poll)).boxed()),
        (10, meet.boxed()),
    ];
    one_of(steps.into_iter().chain(others.map(|(weight, kind)| (drawn.some(weight), kind))))
}

/// One of these that has a weight.
fn one_of<T: std::fmt::Debug + 'static>(
    weighted: impl IntoIterator<Item = (u32, BoxedStrategy<T>)>,
) -> BoxedStrategy<T> {
    Union::new_weighted(weighted.into_iter().filter(|(weight, _)| *weight > 0).collect()).boxed()
}

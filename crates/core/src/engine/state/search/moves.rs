//! The steps of a history.

/// What the adversary may do, each so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// An answer is lost; what was asked for may be done late.
    Lose,
    /// A request is refused for the moment.
    Refuse,
    /// A request is refused for good.
    Break,
    /// A caller leaves.
    Leave,
    Detach,
    Downgrade,
    /// Somebody of this engine releases by force.
    Force,
    /// Somebody of elsewhere does.
    ForceElsewhere,
    /// The store loses the lock.
    Forget,
    /// And its line.
    Restart,
    Close,
    /// A notification is lost, or comes twice.
    DropNotification,
    RepeatNotification,
    /// Time passes and nobody looks at it.
    Pause,
    RenewNow,
    /// A message from before comes now.
    Forge,
    /// A guard that is over acts once more.
    Twice,
}

pub(super) const FAULTS: usize = Fault::Twice as usize + 1;

impl Fault {
    /// The step that it is. The number is a place in the list of what it hits, or 0.
    pub(super) fn at(self, place: u8) -> Move {
        Move::Fault(self, place)
    }
}

/// A step. The numbers are places in the lists of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Join(u8),
    Collect(u8),
    TimesUp(u8),
    /// A guard is released, and its caller waits for the answer.
    Release(u8),
    /// A guard is dropped.
    Drop(u8),
    Attach(u8),
    Execute(u8),
    Answer(u8),
    /// Both.
    RoundTrip(u8),
    Deliver(u8),
    /// Time passes, and the timers fire.
    Tick,
    Timer(u8),
    Fault(Fault, u8),
}

impl Move {
    /// What the adversary does with it, if it is one of its: so many of each may be.
    pub(super) fn fault(self) -> Option<Fault> {
        if let Self::Fault(fault, _) = self { Some(fault) } else { None }
    }
}

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

/// A step. The numbers are places in the lists of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Join(u8),
    Collect(u8),
    TimesUp(u8),
    Leave(u8),
    /// A guard is released, and its caller waits for the answer.
    Release(u8),
    /// A guard is dropped.
    Drop(u8),
    /// And what is left of it acts once more.
    DropTwice(u8),
    Attach(u8),
    Detach(u8),
    Downgrade(u8),
    RenewNow(u8),
    Execute(u8),
    Answer(u8),
    /// Both.
    RoundTrip(u8),
    Lose(u8),
    Refuse(u8),
    Break(u8),
    Deliver(u8),
    DropNotification(u8),
    RepeatNotification(u8),
    Forge(u8),
    Force(u8),
    ForceElsewhere,
    Forget,
    Restart,
    Close(u8),
    /// Time passes, and the timers fire.
    Tick,
    /// Time passes, and they do not.
    Pause,
    Timer(u8),
}

impl Move {
    /// What the adversary does with it, if it is one of its: so many of each may be.
    pub(super) fn fault(self) -> Option<Fault> {
        Some(match self {
            Self::Leave(_) => Fault::Leave,
            Self::DropTwice(_) => Fault::Twice,
            Self::Detach(_) => Fault::Detach,
            Self::Downgrade(_) => Fault::Downgrade,
            Self::RenewNow(_) => Fault::RenewNow,
            Self::Lose(_) => Fault::Lose,
            Self::Refuse(_) => Fault::Refuse,
            Self::Break(_) => Fault::Break,
            Self::DropNotification(_) => Fault::DropNotification,
            Self::RepeatNotification(_) => Fault::RepeatNotification,
            Self::Forge(_) => Fault::Forge,
            Self::Force(_) => Fault::Force,
            Self::ForceElsewhere => Fault::ForceElsewhere,
            Self::Forget => Fault::Forget,
            Self::Restart => Fault::Restart,
            Self::Close(_) => Fault::Close,
            Self::Pause => Fault::Pause,
            _ => return None,
        })
    }
}

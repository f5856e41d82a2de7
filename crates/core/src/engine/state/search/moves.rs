//! The steps of a history.

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
    /// Whether it is the adversary's: so many of each may be.
    pub(super) fn is_fault(self) -> bool {
        use Move::{Answer, Attach, Collect, Deliver, Drop, Execute, Join, Release, RoundTrip, Tick, Timer, TimesUp};
        !matches!(
            self,
            Join(_)
                | Collect(_)
                | TimesUp(_)
                | Release(_)
                | Drop(_)
                | Attach(_)
                | Execute(_)
                | Answer(_)
                | RoundTrip(_)
                | Deliver(_)
                | Tick
                | Timer(_)
        )
    }
}

use std::time::Duration;

/// The pauses of `--restart`: a command that fails at once, again and again, must not keep store and machine busy.
#[derive(Debug)]
pub(crate) struct Restarts {
    next: Duration,
}

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

impl Default for Restarts {
    fn default() -> Self {
        Self { next: SHORTEST }
    }
}

impl Restarts {
    /// The pause after a command that ran for so long.
    pub(crate) fn pause_after(&mut self, ran: Duration) -> Duration {
        if ran >= LONGEST {
            self.next = SHORTEST;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_the_command_ends_early_and_begin_anew_after_it_ran_for_a_minute() {
        let mut restarts = Restarts::default();
        let pauses: Vec<_> = (0..8).map(|_| restarts.pause_after(Duration::from_secs(59)).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(restarts.pause_after(LONGEST), SHORTEST);
        assert_eq!(restarts.pause_after(Duration::ZERO), SHORTEST * 2);
    }
}

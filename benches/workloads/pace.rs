/// How long a round of a workload is, and how many rounds there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    pub(crate) warm_up_millis: u64,
    pub(crate) window_millis: u64,
    pub(crate) quick: bool,
}

impl Pace {
    pub(crate) const FULL: Self = Self { rounds: 5, warm_up_millis: 300, window_millis: 1000, quick: false };
    pub(crate) const QUICK: Self = Self { rounds: 3, warm_up_millis: 150, window_millis: 350, quick: true };
}

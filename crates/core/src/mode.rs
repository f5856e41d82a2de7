use std::fmt;

/// Whether a grant excludes every other of its key, or only exclusive ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Mode {
    /// No other grant of the key exists.
    Exclusive,
    /// Only other shared grants exist beside it.
    Shared,
}

impl Mode {
    /// The stable name, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The mode of a [`Guard`](crate::Guard), as a type. Sealed.
pub trait GuardMode: sealed::Sealed + Send + Sync + 'static {
    /// The mode as a value.
    const MODE: Mode;
}

/// Marks a guard that excludes every other.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

/// Marks a guard that other readers may stand beside.
#[derive(Clone, Copy, Debug)]
pub struct Shared;

impl GuardMode for Exclusive {
    const MODE: Mode = Mode::Exclusive;
}

impl GuardMode for Shared {
    const MODE: Mode = Mode::Shared;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Exclusive {}
    impl Sealed for super::Shared {}
}

//! The counter of a key's epochs, and its format in a file.

use leasehold_core::{Error, ErrorKind, FencingToken, Result};

use crate::error::BACKEND;

/// The counter of the epochs of a key. In a file it is always one line of [`BYTES`](Self::BYTES) bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    /// The newest epoch that was granted.
    pub(crate) epoch: u64,
    /// A number that the spare copy reaches: no epoch up to it needs a new spare copy.
    pub(crate) reserved: u64,
}

impl Counter {
    /// The length of the line in bytes, with the newline.
    pub(crate) const BYTES: usize = 70;
    /// The start of the line, by which a lock file is recognised.
    pub(crate) const MAGIC: &str = "leasehold2 ";

    /// The epoch of the next grant. `None` if it would be too far ahead of the clock.
    pub(crate) fn following(self, clock: u64) -> Result<Option<u64>> {
        let next = FencingToken::next_epoch(Some(self.epoch), clock);
        if let Some(epoch) = next.filter(|epoch| *epoch > FencingToken::MAX_EPOCH) {
            let detail = format!(
                "the next epoch would be {epoch}, which is too large for a token: is the clock of this machine right?"
            );
            return Err(Error::new(ErrorKind::Backend, "count").with_backend(BACKEND).detail(detail));
        }
        Ok(next)
    }

    pub(crate) fn to_line(self) -> String {
        let numbers = format!("{}{:020} {:020} ", Self::MAGIC, self.epoch, self.reserved);
        format!("{numbers}{:016x}\n", checksum(numbers.as_bytes()))
    }

    /// The version of a lock file that begins as those of any version do.
    pub(crate) fn version(bytes: &[u8]) -> Option<u32> {
        let digits = bytes.strip_prefix(b"leasehold")?.split(|byte| *byte == b' ').next()?;
        str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Reads the line. `None` if it was not written completely, or never.
    pub(crate) fn from_line(bytes: &[u8]) -> Option<Self> {
        let line = str::from_utf8(bytes.get(..Self::BYTES)?).ok()?;
        let (numbers, check) = line.strip_suffix('\n')?.split_at_checked(Self::BYTES - 17)?;
        if u64::from_str_radix(check, 16) != Ok(checksum(numbers.as_bytes())) {
            return None;
        }
        let mut words = numbers.strip_prefix(Self::MAGIC)?.split(' ');
        let counter = Self { epoch: words.next()?.parse().ok()?, reserved: words.next()?.parse().ok()? };
        // Larger numbers do not fit into a token and are never granted, so a file that contains one is damaged.
        (counter.epoch.max(counter.reserved) <= FencingToken::MAX_EPOCH).then_some(counter)
    }
}

/// A checksum that shows whether a line was written completely: FNV-1a on words of eight bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| chunk.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte)));
    words.fold(0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64, |sum, word| {
        let sum = (sum ^ word).wrapping_mul(0x0100_0000_01b3);
        sum ^ (sum >> 32)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_torn_line_is_none(epoch in 0..=FencingToken::MAX_EPOCH, length in 0..Counter::BYTES, filler in any::<u8>()) {
            let line = Counter { epoch, reserved: epoch }.to_line().into_bytes();
            let mut torn = line.clone();
            torn[length..].fill(filler);
            prop_assume!(torn != line);
            prop_assert_eq!(Counter::from_line(&torn), None);
            prop_assert_eq!(Counter::from_line(&line[..length]), None);
        }
    }

    #[test]
    fn a_number_that_nobody_granted_is_damage() {
        for epoch in [FencingToken::MAX_EPOCH + 1, u64::MAX] {
            let line = Counter { epoch, reserved: 0 }.to_line();
            assert_eq!(Counter::from_line(line.as_bytes()), None, "{epoch}");
        }
    }

    #[test]
    fn an_epoch_that_fits_into_no_token_is_an_error() {
        for (epoch, clock) in [(FencingToken::MAX_EPOCH, 5), (5, u64::MAX)] {
            let error = Counter { epoch, reserved: 0 }.following(clock).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Backend, "{epoch} {clock}");
        }
    }
}

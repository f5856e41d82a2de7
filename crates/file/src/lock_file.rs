//! The format of a lock file, byte by byte:
//!
//! ```text
//! leasehold2 00000001763712345678 00000000000000000000 0123456789abcdef    the counter: newest epoch, reserved, check
//! -                                                                        the mark: F after a forced release
//! nightly-report                                                           the key, encoded
//! +0123456789abcdef {"session":…}                                          the exclusive holder; - instead of + after its release
//! ```
//!
//! The counter comes first and in one piece, because a process that is killed while it writes leaves whole pages.
//! Bytes after the fourth line are left from a longer content, and have no meaning.

use crate::counter::{Counter, checksum};
use crate::record::Record;

/// The offset of the mark.
pub(crate) const MARK_AT: u64 = Counter::BYTES as u64;
const KEY_AT: usize = Counter::BYTES + 2;
/// The mark of a file that a forced release has replaced.
pub(crate) const FORCED: u8 = b'F';
/// The byte that replaces the first byte of the fourth line when there is no exclusive holder.
pub(crate) const NOBODY: u8 = b'-';
/// A length that is sufficient for the first three lines: counter, mark and the longest key.
pub(crate) const HEAD: usize = 1024;

/// The content of a lock file. Parts that were not written completely, or never, are `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content<'b> {
    pub(crate) counter: Option<Counter>,
    pub(crate) key: Option<&'b str>,
    holder: Option<&'b [u8]>,
}

impl<'b> Content<'b> {
    /// Parses the content of a lock file, also of a damaged one. `None` if the file is something else.
    pub(crate) fn parse(bytes: &'b [u8]) -> Option<Self> {
        let magic = Counter::MAGIC.as_bytes();
        if !bytes.starts_with(magic) {
            // A file that lost power while it grew is empty, cut off, or has zeros in it.
            let torn = magic.starts_with(bytes) || bytes.starts_with(&[0]);
            return torn.then(Self::default);
        }
        let mut lines = bytes.get(KEY_AT..).unwrap_or_default().splitn(3, |byte| *byte == b'\n');
        let (key, holder, rest) = (lines.next(), lines.next(), lines.next());
        Some(Self {
            counter: Counter::from_line(bytes),
            key: key.filter(|_| holder.is_some()).and_then(|key| str::from_utf8(key).ok()),
            holder: holder.filter(|_| rest.is_some()),
        })
    }

    /// The record of the exclusive holder, which may be dead.
    pub(crate) fn holder(&self) -> Option<Record<'static>> {
        let (check, json) = self.holder?.strip_prefix(b"+")?.split_at_checked(16)?;
        let json = json.strip_prefix(b" ")?;
        if check != format!("{:016x}", checksum(json)).as_bytes() {
            return None;
        }
        serde_json::from_slice(json).ok()
    }

    /// Whether the counter or the holder's record cannot be read: a process may be writing it at this moment.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.counter.is_none() || self.holder.is_none_or(|line| line.starts_with(b"+") && self.holder().is_none())
    }
}

/// The content of a whole lock file. `None` as the counter gives zeros of the same length, which cannot be read as one.
pub(crate) fn render(counter: Option<Counter>, key: &str, holder: Option<&Record<'_>>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD);
    match counter {
        Some(counter) => bytes.extend_from_slice(counter.to_line().as_bytes()),
        None => bytes.resize(Counter::BYTES, 0),
    }
    for part in ["-\n", key, "\n"] {
        bytes.extend_from_slice(part.as_bytes());
    }
    match holder {
        Some(holder) => {
            let check_at = bytes.len() + 1;
            let json_at = check_at + 17;
            bytes.extend_from_slice(b"+0000000000000000 ");
            holder.write_json(&mut bytes);
            let check = format!("{:016x}", checksum(&bytes[json_at..]));
            bytes[check_at..json_at - 1].copy_from_slice(check.as_bytes());
        }
        None => bytes.push(NOBODY),
    }
    bytes.push(b'\n');
    bytes
}

/// The offset of the first byte of the fourth line.
pub(crate) fn holder_at(key: &str) -> u64 {
    KEY_AT as u64 + key.len() as u64 + 1
}

#[cfg(test)]
mod tests {
    use leasehold_core::Mode;
    use proptest::prelude::*;

    use super::*;

    const COUNTER: Counter = Counter { epoch: 7, reserved: 9 };

    fn holder() -> Record<'static> {
        let (label, reason) = (Some("a \"label\"\n".into()), Some("\0 and\r 😀".into()));
        Record { session: "s".into(), mode: Mode::Exclusive, pid: 1, label, reason, epoch: 7, since: 5, file: 3 }
    }

    proptest! {
        #[test]
        fn damaged_files_do_not_panic_and_are_seen_as_such(at in 0..150_usize, byte in any::<u8>(), cut in 0..150_usize) {
            let whole = render(Some(COUNTER), "k", Some(&holder()));
            let mut damaged = whole.clone();
            damaged[at] = byte;
            if let Some(content) = Content::parse(&damaged) {
                prop_assert!(content.counter.is_none_or(|counter| counter == COUNTER));
                prop_assert!(content.holder().is_none_or(|seen| seen == holder()));
            }
            let content = Content::parse(&whole[..cut]).unwrap();
            prop_assert!(content.counter.is_none_or(|counter| counter == COUNTER));
        }
    }

    #[test]
    fn the_longest_file_fits() {
        let text = Some("\u{1}".repeat(1024).into());
        let longest = Record { label: text.clone(), reason: text, ..holder() };
        assert!(render(Some(COUNTER), &"%00".repeat(255), Some(&longest)).len() < 32 * 1024);
        assert!(render(Some(COUNTER), &"%00".repeat(255), None).len() < HEAD);
    }
}

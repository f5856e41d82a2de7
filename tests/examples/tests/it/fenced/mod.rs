//! `leasehold::fenced` on real resources: a late write is refused, also when many write at the same time.

mod hash;
mod object;
mod row;

/// A number from 1 to `tokens` for each of eight writers in turn, in an order in which many are late.
fn tokens_of(writer: u64, tokens: u64) -> impl Iterator<Item = u64> {
    (0..tokens / 8).map(move |turn| turn * 8 + (writer * 5 + turn * 3) % 8 + 1)
}

use std::collections::BTreeMap;
use std::io::{self, Write};

use leasehold::{Admin, Clock, Holders, LockKey, Locks};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::args::{ForceReleaseArgs, GcArgs, InspectArgs, ListArgs, StoreArgs};
use crate::choice::{choose, close};
use crate::duration::spoken;
use crate::exit::Failure;
use crate::wording::{self, HolderFields};

/// The exit code of `inspect --exit-code` and `force-release` for a key that nobody holds.
const FREE: u8 = 1;

/// `leasehold inspect`: shows who holds a key.
pub(crate) async fn inspect(args: &InspectArgs, store: &StoreArgs) -> Result<u8, Failure> {
    let store = open(store).await?;
    let seen = store.inspect(&args.key).await;
    close(&store).await;
    let holders = seen?;
    let free = holders.holders.is_empty();
    print(&match (args.json, free) {
        (true, _) => json(&KeyFields::from(&holders)),
        (false, true) => format!("{} is free\n", wording::shown(args.key.as_str())),
        (false, false) => table(&[&holders]),
    })?;
    Ok(if free && args.exit_code { FREE } else { 0 })
}

/// `leasehold list`: shows all held keys with a prefix.
pub(crate) async fn list(args: &ListArgs, store: &StoreArgs) -> Result<u8, Failure> {
    let store = open(store).await?;
    let seen = everything(&store, &args.prefix).await;
    close(&store).await;
    let held = seen?;
    let text = if args.json {
        held.values().map(|holders| json(&KeyFields::from(holders))).collect()
    } else if held.is_empty() {
        "nothing is held\n".to_owned()
    } else {
        table(&held.values().collect::<Vec<_>>())
    };
    print(&text)?;
    Ok(0)
}

/// `leasehold force-release`: frees a key, and shows who held it.
pub(crate) async fn force_release(args: &ForceReleaseArgs, store: &StoreArgs) -> Result<u8, Failure> {
    let store = open(store).await?;
    let taken = store.force_release(&args.key).await;
    close(&store).await;
    let holders = taken?;
    let free = holders.holders.is_empty();
    print(&match (args.json, free) {
        (true, _) => json(&KeyFields::from(&holders)),
        (false, true) => format!("{} was free\n", wording::shown(args.key.as_str())),
        (false, false) => format!("taken away from\n{}", table(&[&holders])),
    })?;
    Ok(if free { FREE } else { 0 })
}

/// `leasehold migrate`: creates the tables.
pub(crate) async fn migrate(store: &StoreArgs) -> Result<u8, Failure> {
    let choice = choose(store)?;
    (choice.tables()?.migrate)(choice.address.expose()).await?;
    print(&format!("the tables of {} exist\n", choice.kind.name))?;
    Ok(0)
}

/// `leasehold gc`: deletes the rows of keys that have been idle for long.
pub(crate) async fn gc(args: &GcArgs, store: &StoreArgs) -> Result<u8, Failure> {
    let choice = choose(store)?;
    let rows = (choice.tables()?.gc)(choice.address.expose(), args.older_than).await?;
    print(&format!("{rows} idle rows deleted\n"))?;
    Ok(0)
}

async fn open(args: &StoreArgs) -> Result<Locks, Failure> {
    Ok(choose(args)?.connect().await?)
}

/// Collects all pages of a listing, sorted by key: a store that scans may list a key twice.
async fn everything(store: &Locks, prefix: &str) -> leasehold::Result<BTreeMap<LockKey, Holders>> {
    let mut held = BTreeMap::new();
    let mut after = None;
    loop {
        let page = store.list(prefix, after.as_ref()).await?;
        held.extend(page.keys.into_iter().map(|holders| (holders.key.clone(), holders)));
        after = page.next;
        if after.is_none() {
            return Ok(held);
        }
    }
}

/// A key and its holders, as in the JSON output.
#[derive(Serialize)]
struct KeyFields<'a> {
    key: &'a str,
    held: bool,
    waiters: Option<u64>,
    holders: Vec<HolderFields<'a>>,
}

impl<'a> From<&'a Holders> for KeyFields<'a> {
    fn from(holders: &'a Holders) -> Self {
        let all = HolderFields::all(holders);
        Self { key: holders.key.as_str(), held: !all.is_empty(), waiters: holders.waiters, holders: all }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).map(|line| line + "\n").unwrap_or_default()
}

/// A table of the holders, one line for each.
fn table(held: &[&Holders]) -> String {
    let heading = ["KEY", "MODE", "HOLDER", "REASON", "HELD", "LEFT", "WAITING", "TOKEN"].map(str::to_owned);
    let rows = held.iter().flat_map(|holders| {
        holders.holders.iter().map(|holder| {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            [
                wording::shown(holders.key.as_str()),
                wording::mode(holder.mode).to_owned(),
                or_dash(holder.label.as_deref().map(wording::shown)),
                or_dash(holder.reason.as_deref().map(wording::shown)),
                or_dash(holder.held_for(&Clock::system()).map(spoken)),
                or_dash(holder.remaining.map(spoken)),
                or_dash(holders.waiters.map(|count| count.to_string())),
                or_dash(holder.token.map(|token| token.to_string())),
            ]
        })
    });
    columns(&std::iter::once(heading).chain(rows).collect::<Vec<_>>())
}

/// Pads every cell, except the last one of a row, to the width of its column.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or_default());
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Writes to standard output. A reader that closes the pipe early (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(failed) if failed.kind() != io::ErrorKind::BrokenPipe => Err(Failure::System(failed)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::{FencingToken, Holder, Mode};

    use super::*;

    fn held(key: &str, remaining: Option<u64>) -> Holders {
        let mut holder = Holder::new(Mode::Exclusive);
        holder.token = Some(FencingToken::from(7));
        holder.remaining = remaining.map(Duration::from_secs);
        holder.label = Some("ada@db1 pid 7".to_owned());
        Holders::new(&LockKey::new(key).unwrap(), vec![holder])
    }

    #[test]
    fn a_table_is_aligned_whatever_the_keys_look_like() {
        let mut waited_for = held("k", Some(23));
        waited_for.waiters = Some(12);
        let text = table(&[&waited_for, &held("鍵\n", None)]);
        assert_eq!(
            text,
            "KEY     MODE       HOLDER         REASON  HELD  LEFT  WAITING  TOKEN\n\
             k       exclusive  ada@db1 pid 7  -       -     23 s  12       7\n\
             \"鍵\\n\"  exclusive  ada@db1 pid 7  -       -     -     -        7\n"
        );
    }

    #[test]
    fn programs_get_every_field_of_every_holder() {
        let mut seen = held("k", None);
        // Ahead of every clock, so that it is shown as no time at all.
        seen.holders[0].granted_at = Holder::of_epoch(Mode::Exclusive, u64::MAX).granted_at;
        seen.waiters = Some(2);
        let line = json(&KeyFields::from(&seen));
        assert_eq!(
            line,
            r#"{"key":"k","held":true,"waiters":2,"holders":[{"mode":"exclusive","token":7,"held_for_ms":0,"remaining_ms":null,"label":"ada@db1 pid 7","reason":null}]}"#
                .to_owned()
                + "\n"
        );
    }
}

use std::collections::BTreeMap;
use std::io::{self, Write};

use leasehold::{Admin, Clock, Holders, Locks};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::args::{ForceReleaseArgs, GcArgs, InspectArgs, ListArgs, StoreArgs};
use crate::choice::{Purpose, choose, close};
use crate::duration::spoken;
use crate::exit::Failure;
use crate::wording::{self, HolderFields, json};

/// The exit code of `inspect --exit-code` for a key that nobody holds, and of `force-release` that released nothing.
const FREE: u8 = 1;

/// `leasehold inspect`: shows who holds a key.
pub(crate) async fn inspect(args: &InspectArgs, store: &StoreArgs) -> Result<u8, Failure> {
    let place = Place::open(store).await?;
    let holders = place.ask(async |store| store.inspect(&args.key).await).await?;
    let free = holders.holders.is_empty();
    print(&match (args.json, free) {
        (true, _) => json(&place.fields(&holders)),
        (false, true) => format!("{} is free in {}\n", wording::shown(args.key.as_str()), place.shown()),
        (false, false) => place.table(&[&holders]),
    })?;
    Ok(if free && args.exit_code { FREE } else { 0 })
}

/// `leasehold list`: shows all held keys with a prefix.
pub(crate) async fn list(args: &ListArgs, store: &StoreArgs) -> Result<u8, Failure> {
    let place = Place::open(store).await?;
    // Sorted by key.
    let mut held = BTreeMap::new();
    place
        .ask(async |store| {
            each_held(store, &args.prefix, |holders| drop(held.insert(holders.key.clone(), holders))).await
        })
        .await?;
    let text = if args.json {
        held.values().map(|holders| json(&place.fields(holders))).collect()
    } else if held.is_empty() {
        format!("nothing is held in {}\n", place.shown())
    } else {
        place.table(&held.values().collect::<Vec<_>>())
    };
    print(&text)?;
    Ok(0)
}

/// `leasehold force-release`: frees a key, or ends one grant, and shows who held it.
pub(crate) async fn force_release(args: &ForceReleaseArgs, store: &StoreArgs) -> Result<u8, Failure> {
    let place = Place::open(store).await?;
    let (released, present) = place
        .ask(async |store| {
            let Some(token) = args.token else { return Ok((store.force_release(&args.key).await?, None)) };
            let released = store.force_release_grant(&args.key, token.into()).await?;
            // Who has it instead, for people to read: it may have changed hands again by then.
            let present = if released.holders.is_empty() { Some(store.inspect(&args.key).await?) } else { None };
            Ok((released, present))
        })
        .await?;
    let (key, free) = (wording::shown(args.key.as_str()), released.holders.is_empty());
    let not_meant = present.as_ref().filter(|present| !present.holders.is_empty()).zip(args.token);
    print(&match (args.json, not_meant) {
        (true, _) => {
            let fields = place.fields(present.as_ref().unwrap_or(&released));
            json(&ForcedFields { released: !free, of_key: fields })
        }
        (false, Some((present, token))) => {
            format!(
                "nothing is released: {key} is not held under the token {token}, but by\n{}",
                place.table(&[present])
            )
        }
        (false, None) if free => format!("{key} was free in {}\n", place.shown()),
        (false, None) => format!("taken away from\n{}", place.table(&[&released])),
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

/// The store that is asked, and what it is called.
struct Place {
    store: Locks,
    name: String,
}

impl Place {
    async fn open(args: &StoreArgs) -> Result<Self, Failure> {
        let choice = choose(args)?;
        Ok(Self { store: choice.connect(Purpose::Look).await?, name: choice.shown() })
    }

    /// Asks the store, and closes it.
    async fn ask<T>(&self, question: impl AsyncFnOnce(&Locks) -> leasehold::Result<T>) -> Result<T, Failure> {
        let answer = question(&self.store).await;
        close(&self.store).await;
        Ok(answer?)
    }

    fn shown(&self) -> String {
        wording::shown(&self.name)
    }

    fn fields<'a>(&'a self, holders: &'a Holders) -> KeyFields<'a> {
        let all = HolderFields::all(holders);
        KeyFields {
            key: holders.key.as_str(),
            backend: &self.name,
            held: !all.is_empty(),
            waiters: holders.waiters,
            holders: all,
        }
    }

    /// A table of the holders, and below it where they are.
    fn table(&self, held: &[&Holders]) -> String {
        format!("{}in {}\n", table(held), self.shown())
    }
}

/// Goes through all pages of a listing; each key is shown as soon as its page came. A store that scans may list a key twice.
pub(crate) async fn each_held(store: &Locks, prefix: &str, mut show: impl FnMut(Holders)) -> leasehold::Result<()> {
    let mut after = None;
    loop {
        let page = store.list(prefix, after.as_ref()).await?;
        page.keys.into_iter().filter(|holders| !holders.holders.is_empty()).for_each(&mut show);
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// A key and its holders, as in the JSON output.
#[derive(Serialize)]
struct KeyFields<'a> {
    key: &'a str,
    backend: &'a str,
    held: bool,
    waiters: Option<u64>,
    holders: Vec<HolderFields<'a>>,
}

/// What `force-release` did: if it released nothing, the holders are those that the key has instead.
#[derive(Serialize)]
struct ForcedFields<'a> {
    released: bool,
    #[serde(flatten)]
    of_key: KeyFields<'a>,
}

/// A table of the holders, one line for each.
fn table(held: &[&Holders]) -> String {
    let heading = ["KEY", "MODE", "HOLDER", "REASON", "HELD", "LEFT", "WAITING", "TOKEN"].map(str::to_owned);
    let rows = held.iter().flat_map(|holders| {
        holders.holders.iter().map(|holder| {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            [
                wording::shown(holders.key.as_str()),
                holder.mode.as_str().to_owned(),
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

/// Writes to standard output. A reader that closes the pipe early (`| head`) is no failure; `false` says that it did.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(failed) if failed.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(failed) => Err(Failure::System(failed)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::{FencingToken, Holder, LockKey, Mode};

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
}

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use leasehold_core::{Cursor, Error, ErrorKind, Holder, Holders, LockKey, Page, Result};

use crate::answer::NodeEntry;
use crate::error::Failure;
use crate::node::{LOCK, Node};
use crate::store::Store;

/// Reads who holds a key; asks all nodes, and waits for all.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    let view = views(store, slice::from_ref(key)).await.pop().unwrap_or_default();
    holders(store, key, view, "inspect")
}

/// Reads one page of the held keys that start with `prefix`: from one node after the other, until every held key must have
/// been on one of them.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    let mut position = after.map_or(Ok(ListPosition::default()), ListPosition::read)?;
    let (nodes, majority) = (store.nodes.all(), store.nodes.majority());
    let mut failed = Vec::new();
    while position.node < nodes.len() && position.done.len() < majority {
        let (keys, next) = match position.scan(&nodes[position.node], prefix).await {
            Ok(scanned) => scanned,
            Err(failure) => {
                failed.push((position.node, failure));
                position.skip();
                continue;
            }
        };
        let held = held_keys(store, &position, &keys).await?;
        match next {
            Some(cursor) => position.cursor = Some(cursor),
            None => position.finish(),
        }
        // The last node may have answered, and too many before it not.
        let more = position.done.len() < majority;
        if more && (held.is_empty() || position.node == nodes.len()) {
            continue;
        }
        return Ok(Page { keys: held, next: more.then(|| position.to_cursor()) });
    }
    if position.done.len() < majority {
        return Err(store.nodes.quorum_not_reached(position.done.len(), failed).into_error("list"));
    }
    Ok(Page::default())
}

/// Those of these keys that are held and were not on an earlier page.
async fn held_keys(store: &Store, position: &ListPosition, keys: &[LockKey]) -> Result<Vec<Holders>> {
    let is_new = |(view, _): &(View, _)| !view.entries.iter().any(|(index, entry)| position.has_listed(*index, entry));
    let views = views(store, keys).await.into_iter().zip(keys).filter(is_new);
    let held = views.map(|(view, key)| holders(store, key, view.without_foreign(), "list"));
    let mut held = held.collect::<Result<Vec<_>>>()?;
    held.retain(|holders| !holders.holders.is_empty());
    Ok(held)
}

/// Frees a key on all nodes whoever holds it, leaves word for the holder, and answers who that was.
///
/// With `only`, it is first asked who holds the key. If that is not a grant with this epoch, nothing is changed; else each node frees
/// the key in one step if it still has the owner of that grant. The owner is compared, as a node that was repaired or answered
/// late may have the grant under another epoch, and no other grant has its owner.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    /// How long beyond its lease a holder may come and ask what became of it.
    const GRACE: Duration = Duration::from_secs(60);
    let majority = store.nodes.majority();
    let owner: Arc<str> = match only {
        None => "".into(),
        Some(epoch) => {
            let view = views(store, slice::from_ref(key)).await.pop().unwrap_or_default();
            let owner = view.owner_of(epoch, majority);
            let seen = holders(store, key, view, "force-release")?;
            let Some(owner) = owner.filter(|_| !seen.holders.is_empty()) else {
                return Ok(Holders::new(key, Vec::new()));
            };
            owner.into()
        }
    };
    let mut answers = store.nodes.ask(|node| {
        let (key, owner) = (key.clone(), Arc::clone(&owner));
        async move { node.force_release(&key, GRACE, &owner).await }
    });
    let mut view = View::default();
    while let Some((index, answer)) = answers.next().await {
        view.add(index, answer);
    }
    holders(store, key, view, "force-release")
}

/// The entries of one key on the nodes.
#[derive(Debug, Default)]
struct View {
    entries: Vec<(usize, NodeEntry)>,
    failed: Vec<(usize, Failure)>,
}

/// The views of these keys, in their order.
async fn views(store: &Store, keys: &[LockKey]) -> Vec<View> {
    let keys: Arc<[LockKey]> = keys.into();
    let mut answers = store.nodes.ask(|node| {
        let keys = Arc::clone(&keys);
        async move { node.inspect(&keys).await }
    });
    let mut views: Vec<View> = keys.iter().map(|_| View::default()).collect();
    while let Some((index, answer)) = answers.next().await {
        match answer {
            Ok(entries) => views.iter_mut().zip(entries).for_each(|(view, entry)| view.add(index, entry)),
            Err(failure) => views.iter_mut().for_each(|view| view.add(index, Err(failure.clone()))),
        }
    }
    views
}

/// Who holds the key by the answers of the nodes. The label names the nodes that failed.
fn holders(store: &Store, key: &LockKey, view: View, operation: &'static str) -> Result<Holders> {
    let (majority, nodes) = (store.nodes.majority(), store.nodes.all().len());
    if view.entries.len() < majority {
        return Err(store.nodes.quorum_not_reached(view.entries.len(), view.failed).into_error(operation));
    }
    let mut holders: Vec<Holder> = view.holder(majority).into_iter().collect();
    if let (Some(holder), false) = (holders.first_mut(), view.failed.is_empty()) {
        let on = view.entries.iter().filter(|(_, entry)| entry.is_some()).count();
        let failed: Vec<String> =
            store.nodes.quorum_not_reached(0, view.failed).failures.iter().map(ToString::to_string).collect();
        let label = holder.label.take().map(|label| label + " ").unwrap_or_default();
        holder.label = Some(format!("{label}(on {on} of {nodes} nodes; {})", failed.join("; ")));
    }
    Ok(Holders::new(key, holders))
}

impl View {
    fn add(&mut self, index: usize, answer: Result<NodeEntry, Failure>) {
        match answer {
            Ok(entry) => self.entries.push((index, entry)),
            Err(failure) => self.failed.push((index, failure)),
        }
    }

    /// The view for a listing, in which an entry of another type is not a held key.
    fn without_foreign(mut self) -> Self {
        let (foreign, failed): (Vec<_>, Vec<_>) = self.failed.into_iter().partition(|(_, failure)| failure.foreign);
        self.entries.extend(foreign.into_iter().map(|(index, _)| (index, None)));
        Self { failed, ..self }
    }

    /// The owner of the [`holder`](Self::holder), if that has this epoch.
    fn owner_of(&self, epoch: u64, majority: usize) -> Option<String> {
        self.holder(majority)?.token.filter(|token| token.epoch() == epoch)?;
        let entries = self.entries.iter().filter_map(|(_, entry)| entry.as_ref());
        entries.map(|(entry, _)| entry).find(|entry| entry.epoch == Some(epoch)).map(|entry| entry.owner.clone())
    }

    /// The holder that a majority of the nodes may have, if the nodes that failed are counted for it.
    ///
    /// An entry on fewer nodes is of an attempt in flight, or the rest of an attempt that failed.
    fn holder(&self, majority: usize) -> Option<Holder> {
        let entries = || self.entries.iter().filter_map(|(_, entry)| entry.as_ref());
        let of = |owner: &str| entries().filter(|(entry, _)| entry.owner == owner).count();
        let (entry, _) = entries().max_by_key(|(entry, _)| of(&entry.owner))?;
        if of(&entry.owner) + self.failed.len() < majority {
            return None;
        }
        let ours: Vec<_> = entries().filter(|(other, _)| other.owner == entry.owner).collect();
        // Where a claim was made again, a few nodes have a later epoch than the one that a majority had at first.
        let having = |epoch| ours.iter().filter(|(other, _)| other.epoch == epoch).count();
        let granted = ours.iter().map(|(entry, _)| entry).max_by_key(|entry| (having(entry.epoch), entry.epoch))?;
        let mut holder = granted.to_holder();
        let mut leases: Vec<Duration> = ours.iter().map(|(_, left)| left.unwrap_or(Duration::MAX)).collect();
        leases.sort_unstable_by(|a, b| b.cmp(a));
        // Until the shortest lease of the longest majority ends, a majority has the holder.
        holder.remaining = leases.get(majority - 1).or(leases.last()).copied().filter(|left| *left < Duration::MAX);
        Some(holder)
    }
}

/// How far a listing has come. As a cursor: `done@began.done@began…/node@began/cursor on that node`.
#[derive(Debug, Default, PartialEq, Eq)]
struct ListPosition {
    /// The indices of the nodes that are done, each with when their scan began, in ms by the node's clock.
    done: Vec<(usize, u64)>,
    node: usize,
    /// When the scan of `node` began, in ms by its clock; 0 before it begins.
    began: u64,
    cursor: Option<Cursor>,
}

impl ListPosition {
    fn read(cursor: &Cursor) -> Result<Self> {
        fn visit(text: &str) -> Option<(usize, u64)> {
            let (node, began) = text.split_once('@')?;
            Some((node.parse().ok()?, began.parse().ok()?))
        }
        let read = || {
            let mut parts = cursor.0.splitn(3, '/');
            let done = parts.next()?.split('.').filter(|visited| !visited.is_empty());
            let done = done.map(visit).collect::<Option<Vec<_>>>()?;
            let (node, began) = visit(parts.next()?)?;
            let cursor = Some(parts.next()?).filter(|cursor| !cursor.is_empty());
            Some(Self { done, node, began, cursor: cursor.map(|cursor| Cursor(cursor.to_owned())) })
        };
        read().ok_or_else(|| Error::new(ErrorKind::InvalidOptions, "list").detail("no list gave this cursor"))
    }

    fn to_cursor(&self) -> Cursor {
        let done: Vec<String> = self.done.iter().map(|(node, began)| format!("{node}@{began}")).collect();
        let cursor = self.cursor.as_ref().map(|cursor| cursor.0.as_str()).unwrap_or_default();
        Cursor(format!("{}/{}@{}/{cursor}", done.join("."), self.node, self.began))
    }

    async fn scan(&mut self, node: &Node, prefix: &str) -> Result<(Vec<LockKey>, Option<Cursor>), Failure> {
        if self.began == 0 {
            self.began = node.clock().await?;
        }
        node.scan(prefix, LOCK, self.cursor.as_ref()).await
    }

    /// Whether this entry was there when its node was scanned, so that its key is on an earlier page. An entry that is
    /// newer than the scan was not: a claim may have come late to that node.
    fn has_listed(&self, index: usize, entry: &NodeEntry) -> bool {
        let Some((entry, _)) = entry else { return false };
        self.done.iter().any(|(node, began)| *node == index && entry.since.is_none_or(|since| since < *began))
    }

    fn finish(&mut self) {
        self.done.push((self.node, self.began));
        self.skip();
    }

    fn skip(&mut self) {
        self.node += 1;
        self.began = 0;
        self.cursor = None;
    }
}

#[cfg(test)]
mod tests {
    use leasehold_redis::Entry;

    use super::*;

    const OWNERS: [&str; 2] = ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"];

    fn view(entries: &[Option<(usize, &str, u64)>], failed: usize) -> View {
        let read = |(owner, epoch, left): &(usize, &str, u64)| {
            let entry = Entry::read(&format!("{} {epoch} {{}}", OWNERS[*owner]));
            (entry, Some(Duration::from_millis(*left)))
        };
        let mut view = View::default();
        for (index, entry) in entries.iter().enumerate() {
            view.add(index, Ok(entry.as_ref().map(read)));
        }
        for index in 0..failed {
            view.add(entries.len() + index, Err(Failure::of(crate::node_state::NodeCondition::Reset)));
        }
        view
    }

    #[test]
    fn the_holder_is_the_owner_that_a_majority_has_for_as_long_as_the_majority_has_it() {
        let ours = |left| Some((0, "7", left));
        let holder = view(&[ours(10), ours(30), ours(20), Some((1, "-", 99)), None], 0).holder(3).unwrap();
        assert_eq!(holder.token, Some(leasehold_core::FencingToken::of_epoch(7)));
        assert_eq!(holder.remaining, Some(Duration::from_millis(10)));
        assert_eq!(view(&[ours(10), ours(10), None, None, None], 0).holder(3), None);
        assert!(view(&[ours(10), ours(10), None, None], 1).holder(3).is_some());
        assert_eq!(view(&[None, None, None], 2).holder(3), None);
    }
}

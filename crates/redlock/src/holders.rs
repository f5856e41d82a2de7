use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use leasehold_core::{Cursor, Error, ErrorKind, Holder, Holders, LockKey, Page, Result};

use crate::answer::Seen;
use crate::backend::RedlockBackend;
use crate::condition::Failure;
use crate::fleet::Asked;
use crate::node::{LOCK, Node};

/// What the nodes say of one key.
#[derive(Debug, Default)]
pub(crate) struct View {
    seen: Vec<(usize, Seen)>,
    failed: Vec<(usize, Failure)>,
}

impl RedlockBackend {
    /// Who holds these keys, in their order; asks all nodes, and waits for all.
    pub(crate) async fn inspect_all(&self, keys: &[LockKey]) -> Result<Vec<Holders>> {
        self.views(keys).await.into_iter().zip(keys).map(|(view, key)| self.holders(key, view, "inspect")).collect()
    }

    async fn views(&self, keys: &[LockKey]) -> Vec<View> {
        let keys: Arc<[LockKey]> = keys.into();
        let mut asked: Asked<_> = self.fleet.ask(|node| {
            let keys = Arc::clone(&keys);
            async move { node.inspect(&keys).await }
        });
        let mut views: Vec<View> = keys.iter().map(|_| View::default()).collect();
        while let Some((index, answers)) = asked.next().await {
            match answers {
                Ok(answers) => views.iter_mut().zip(answers).for_each(|(view, answer)| view.add(index, answer)),
                Err(failure) => views.iter_mut().for_each(|view| view.add(index, Err(failure.clone()))),
            }
        }
        views
    }

    pub(crate) async fn force(&self, key: &LockKey) -> Result<Holders> {
        /// How long beyond its lease a holder may come and ask what became of it.
        const GRACE: Duration = Duration::from_secs(60);
        let mut asked = self.fleet.ask(|node| {
            let key = key.clone();
            async move { node.force(&key, GRACE).await }
        });
        let mut view = View::default();
        while let Some((index, answer)) = asked.next().await {
            view.add(index, answer);
        }
        self.holders(key, view, "force-release")
    }

    fn holders(&self, key: &LockKey, view: View, operation: &'static str) -> Result<Holders> {
        let (majority, nodes) = (self.fleet.majority(), self.fleet.nodes().len());
        if view.seen.len() < majority {
            return Err(self.fleet.quorum_not_reached(view.seen.len(), view.failed).into_error(operation));
        }
        let mut holders: Vec<Holder> = view.holder(majority).into_iter().collect();
        if let (Some(holder), false) = (holders.first_mut(), view.failed.is_empty()) {
            let on = view.seen.iter().filter(|(_, seen)| seen.is_some()).count();
            let silent: Vec<String> =
                self.fleet.quorum_not_reached(0, view.failed).failures.iter().map(ToString::to_string).collect();
            let label = holder.label.take().map(|label| label + " ").unwrap_or_default();
            holder.label = Some(format!("{label}(on {on} of {nodes} nodes; {})", silent.join("; ")));
        }
        Ok(Holders { key: key.clone(), holders })
    }

    /// One page: of one node after the other, until enough are done that every held key is on one of them.
    pub(crate) async fn page(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let mut place = after.map_or(Ok(Place::default()), Place::read)?;
        let (nodes, majority) = (self.fleet.nodes(), self.fleet.majority());
        let mut failed = Vec::new();
        while place.node < nodes.len() && place.done.len() < majority {
            let (keys, next) = match place.scan(&nodes[place.node], prefix).await {
                Ok(scanned) => scanned,
                Err(failure) => {
                    failed.push((place.node, failure));
                    place.skip();
                    continue;
                }
            };
            let views = self.views(&keys).await;
            let mut held = Vec::new();
            for (view, key) in views.into_iter().zip(&keys) {
                if view.seen.iter().any(|(index, seen)| place.has_told(*index, seen)) {
                    continue;
                }
                let holders = self.holders(key, view.without_foreign(), "list")?;
                if !holders.holders.is_empty() {
                    held.push(holders);
                }
            }
            match next {
                Some(cursor) => place.cursor = Some(cursor),
                None => place.finish(),
            }
            // The last node may have answered, and too many before it not.
            let more = place.done.len() < majority;
            if more && (held.is_empty() || place.node == nodes.len()) {
                continue;
            }
            return Ok(Page { keys: held, next: more.then(|| place.to_cursor()) });
        }
        if place.done.len() < majority {
            return Err(self.fleet.quorum_not_reached(place.done.len(), failed).into_error("list"));
        }
        Ok(Page::default())
    }
}

impl View {
    fn add(&mut self, index: usize, answer: Result<Seen, Failure>) {
        match answer {
            Ok(seen) => self.seen.push((index, seen)),
            Err(failure) => self.failed.push((index, failure)),
        }
    }

    /// For a listing, in which an entry of another type is not a held key.
    fn without_foreign(mut self) -> Self {
        let (foreign, failed): (Vec<_>, Vec<_>) = self.failed.into_iter().partition(|(_, failure)| failure.foreign);
        self.seen.extend(foreign.into_iter().map(|(index, _)| (index, None)));
        Self { failed, ..self }
    }

    /// The one that a majority may have as the holder, if those who are silent are counted for it.
    ///
    /// What is on fewer nodes is on its way, or the rest of an attempt that failed.
    fn holder(&self, majority: usize) -> Option<Holder> {
        let entries = || self.seen.iter().filter_map(|(_, seen)| seen.as_ref());
        let of = |owner: &str| entries().filter(|(entry, _)| entry.owner == owner).count();
        let (entry, _) = entries().max_by_key(|(entry, _)| of(&entry.owner))?;
        if of(&entry.owner) + self.failed.len() < majority {
            return None;
        }
        let ours: Vec<_> = entries().filter(|(other, _)| other.owner == entry.owner).collect();
        let newest = ours.iter().map(|(entry, _)| entry).max_by_key(|entry| entry.epoch)?;
        let mut holder = newest.to_holder();
        let mut leases: Vec<Duration> = ours.iter().map(|(_, left)| left.unwrap_or(Duration::MAX)).collect();
        leases.sort_unstable_by(|a, b| b.cmp(a));
        // Until then a majority has it.
        holder.remaining = leases.get(majority - 1).or(leases.last()).copied().filter(|left| *left < Duration::MAX);
        Some(holder)
    }
}

/// How far a listing has come: `done@began.done@began…/node@began/place on that node`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place {
    /// The nodes that have been gone through, by their places, and when that began, in ms by the node's clock.
    done: Vec<(usize, u64)>,
    node: usize,
    /// 0: it has not.
    began: u64,
    cursor: Option<Cursor>,
}

impl Place {
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
            self.began = node.now().await?;
        }
        node.scan(prefix, LOCK, self.cursor.as_ref()).await
    }

    /// Whether what is seen on this node was told when that was gone through: a claim may have come late there.
    fn has_told(&self, index: usize, seen: &Seen) -> bool {
        let Some((entry, _)) = seen else { return false };
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

    fn view(seen: &[Option<(usize, &str, u64)>], failed: usize) -> View {
        let read = |(owner, epoch, left): &(usize, &str, u64)| {
            let entry = Entry::read(&format!("{} {epoch} {{}}", OWNERS[*owner])).unwrap();
            (entry, Some(Duration::from_millis(*left)))
        };
        let mut view = View::default();
        for (index, seen) in seen.iter().enumerate() {
            view.add(index, Ok(seen.as_ref().map(read)));
        }
        for index in 0..failed {
            view.add(seen.len() + index, Err(Failure::of(crate::NodeCondition::Reset)));
        }
        view
    }

    #[test]
    fn the_holder_is_whom_a_majority_has_for_as_long_as_it_has() {
        let ours = |left| Some((0, "7", left));
        let holder = view(&[ours(10), ours(30), ours(20), Some((1, "-", 99)), None], 0).holder(3).unwrap();
        assert_eq!(holder.token, Some(leasehold_core::FencingToken::of_epoch(7)));
        assert_eq!(holder.remaining, Some(Duration::from_millis(10)));
        assert_eq!(view(&[ours(10), ours(10), None, None, None], 0).holder(3), None);
        assert!(view(&[ours(10), ours(10), None, None], 1).holder(3).is_some());
        assert_eq!(view(&[None, None, None], 2).holder(3), None);
    }

    #[test]
    fn a_place_in_a_listing_survives_its_text() {
        let on_the_way = Place { done: vec![(0, 17), (2, 18)], node: 3, began: 19, cursor: Some(Cursor(" 17".into())) };
        for place in [Place::default(), on_the_way] {
            assert_eq!(Place::read(&place.to_cursor()).unwrap(), place);
        }
        for odd in ["", "/", "x/1@0/", "0.1/1@0/", "0@0/y/", "0@0", "/1/"] {
            assert!(Place::read(&Cursor(odd.into())).is_err(), "{odd}");
        }
    }
}

use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::types::config::Server;

use crate::client::error;

/// Who is the primary, and by which vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) epoch: u64,
    pub(super) server: Server,
}

/// What one Sentinel says.
#[derive(Clone, Debug)]
pub(super) enum View {
    /// The Sentinel has not answered yet.
    Awaited,
    Says(Named),
    Silent(DriverError),
}

#[derive(Debug)]
pub(super) struct Views(pub(super) Vec<View>);

impl Views {
    pub(super) fn says(&self) -> impl Iterator<Item = &Named> {
        self.0.iter().filter_map(|view| if let View::Says(named) = view { Some(named) } else { None })
    }

    fn are_most(&self, count: usize) -> bool {
        count > self.0.len() / 2
    }

    pub(super) fn is_enough(&self) -> bool {
        self.are_most(self.says().count()) || !self.0.iter().any(|view| matches!(view, View::Awaited))
    }

    /// The newest word. An older one than what was believed before is of a Sentinel that did not hear yet; unless all
    /// say so, and they are most: then they were set up anew.
    pub(super) fn choose(&self, believed: Option<&Named>) -> Option<Named> {
        let newest = self.says().max_by_key(|named| named.epoch);
        let (Some(newest), Some(believed)) = (newest, believed) else { return newest.or(believed).cloned() };
        let confirmed = self.says().any(|named| named == believed);
        let anew = self.are_most(self.says().count()) && self.says().all(|named| named == newest);
        let newer = newest.epoch > believed.epoch || (newest.epoch == believed.epoch && !confirmed) || anew;
        Some(if newer { newest.clone() } else { believed.clone() })
    }

    /// Why none of them says anything, if that is so.
    pub(super) fn silence(&self) -> Option<DriverError> {
        self.says().next().is_none().then(|| self.script_error())
    }

    /// Why nobody is named.
    pub(super) fn script_error(&self) -> DriverError {
        let errors = self.0.iter().filter_map(|view| if let View::Silent(error) = view { Some(error) } else { None });
        // What a server said tells more than that another did not answer.
        let told = errors.max_by_key(|error| error::refusal(error).is_some());
        told.cloned().unwrap_or_else(|| DriverError::new(DriverKind::Timeout, "No Sentinel answers."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(epoch: u64, host: &str) -> Named {
        Named { epoch, server: Server::new(host, 1) }
    }

    fn says(epoch: u64, host: &str) -> View {
        View::Says(named(epoch, host))
    }

    fn silent() -> View {
        View::Silent(DriverError::new(DriverKind::IO, "gone"))
    }

    #[test]
    fn the_newest_word_counts_and_nobody_is_led_back() {
        let old = named(1, "old");
        let new = named(2, "new");
        for (views, believed, expected) in [
            (vec![View::Awaited, silent(), silent()], None, None),
            (vec![silent(), silent(), silent()], Some(&new), Some(&new)),
            (vec![says(1, "old"), View::Awaited, View::Awaited], None, Some(&old)),
            (vec![says(1, "old"), says(2, "new"), says(1, "old")], Some(&old), Some(&new)),
            (vec![says(1, "old"), says(1, "old"), says(2, "new")], None, Some(&new)),
            // The one that knew is gone, another did not hear yet.
            (vec![says(1, "old"), silent(), silent()], Some(&new), Some(&new)),
            (vec![says(1, "old"), silent(), says(2, "new")], Some(&new), Some(&new)),
            // Set up anew.
            (vec![says(1, "old"), says(1, "old"), silent()], Some(&new), Some(&old)),
            // Without epochs: when none says any more what was believed.
            (vec![says(1, "old"), says(1, "other"), silent()], Some(&old), Some(&old)),
            (vec![says(1, "other"), says(1, "other"), silent()], Some(&old), Some(&named(1, "other"))),
            (vec![says(1, "other"), silent(), silent()], Some(&old), Some(&named(1, "other"))),
        ] {
            let views = Views(views);
            assert_eq!(views.choose(believed).as_ref(), expected, "{views:?} {believed:?}");
        }
    }

    #[test]
    fn most_sentinels_are_enough_and_so_are_all_that_answer() {
        assert!(!Views(vec![says(1, "a"), View::Awaited, View::Awaited]).is_enough());
        assert!(!Views(vec![says(1, "a"), silent(), View::Awaited]).is_enough());
        assert!(Views(vec![says(1, "a"), says(1, "a"), View::Awaited]).is_enough());
        assert!(Views(vec![says(1, "a"), silent(), silent()]).is_enough());
        assert!(!Views(vec![says(1, "a"), says(1, "a"), silent(), silent(), View::Awaited]).is_enough());
        assert!(Views(vec![silent(), silent(), silent()]).is_enough());
        assert!(Views(vec![silent(), says(1, "a")]).silence().is_none());
        assert_eq!(*Views(vec![silent(), View::Awaited]).silence().expect("silence").kind(), DriverKind::IO);
        let refused = View::Silent(DriverError::new(DriverKind::Auth, "WRONGPASS no"));
        assert_eq!(*Views(vec![silent(), refused, silent()]).script_error().kind(), DriverKind::Auth);
    }
}

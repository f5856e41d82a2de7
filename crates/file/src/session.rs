use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_core::{Mode, Result};
use uuid::Uuid;

use crate::fault::unavailable;
use crate::flocked::{Flocked, Opened};
use crate::folder::Spot;

/// Which of those who wrote themselves down as holders are alive.
///
/// Every backend keeps one file locked from its first grant to its end, and each of its records names that file. So
/// whether a record counts can be asked of the kernel without touching the lock of the key: a probe of that would
/// keep it, for an instant, from whoever tries to take it. Process ids are not asked; they are used again, and mean
/// something else in every container.
#[derive(Debug)]
pub(crate) struct Sessions {
    folder: Mutex<Spot>,
    ours: Mutex<Option<Session>>,
}

#[derive(Debug)]
struct Session {
    id: Arc<str>,
    spot: Spot,
    locked: Flocked,
}

/// What is known of sessions during one look around.
pub(crate) type Census = HashMap<String, bool>;

impl Sessions {
    pub(crate) fn new(folder: Spot) -> Self {
        Self { folder: Mutex::new(folder), ours: Mutex::new(None) }
    }

    /// Goes on in another folder: the records there name the same session.
    pub(crate) fn follow(&self, folder: &Spot) -> Result<()> {
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = folder.clone();
        let mut ours = self.lock();
        let Some(session) = &mut *ours else { return Ok(()) };
        folder.create_folder()?;
        session.spot = folder.below(&session.id);
        session.mend()
    }

    fn folder(&self) -> Spot {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The name of ours, and whether it began just now: then it is time to sweep.
    pub(crate) fn ours(&self) -> Result<(Arc<str>, bool)> {
        let mut ours = self.lock();
        if let Some(session) = &*ours {
            return Ok((Arc::clone(&session.id), false));
        }
        let folder = self.folder();
        folder.create_folder()?;
        let session = Session::begin(&folder)?;
        let id = Arc::clone(&session.id);
        *ours = Some(session);
        Ok((id, true))
    }

    /// Puts the file of ours back if somebody cleaned it away: the records name it.
    pub(crate) fn mend(&self) -> Result<()> {
        match &mut *self.lock() {
            Some(session) => session.mend(),
            None => Ok(()),
        }
    }

    /// Ends ours; its records count no more.
    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    pub(crate) fn lives(&self, id: &str, census: &mut Census) -> Result<bool> {
        if let Some(known) = census.get(id) {
            return Ok(*known);
        }
        let lives = self.probe(id)?;
        census.insert(id.to_owned(), lives);
        Ok(lives)
    }

    /// Those whose process ended without removing its file.
    pub(crate) fn dead(&self, census: &mut Census) -> Result<Vec<String>> {
        let mut dead = Vec::new();
        for id in self.folder().names()? {
            if Uuid::try_parse(&id).is_ok() && !self.lives(&id, census)? {
                dead.push(id);
            }
        }
        Ok(dead)
    }

    pub(crate) fn bury(&self, dead: &[String]) {
        for id in dead {
            // Another may have been quicker.
            self.folder().below(id).remove();
        }
    }

    fn probe(&self, id: &str) -> Result<bool> {
        if Uuid::try_parse(id).is_err() {
            // A record says anything; it must not lead out of the folder.
            return Ok(false);
        }
        let spot = self.folder().below(id);
        let Some(opened) = Opened::at(&spot, false)? else { return Ok(false) };
        // Shared, so that two who probe at once do not take each other for the session.
        Ok(opened.attempt(Mode::Shared, &spot)?.is_err())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn begin(folder: &Spot) -> Result<Self> {
        const TRIES: u32 = 16;
        for _ in 0..TRIES {
            let id = Uuid::new_v4().simple().to_string();
            let spot = folder.below(&id);
            if let Some(locked) = Self::lock(&spot)? {
                return Ok(Self { id: id.into(), spot, locked });
            }
        }
        Err(unavailable(folder, "does not keep files; is something cleaning up there?"))
    }

    fn mend(&mut self) -> Result<()> {
        if !self.spot.is_there()?
            && let Some(locked) = Self::lock(&self.spot)?
        {
            self.locked = locked;
        }
        Ok(())
    }

    /// The file gets its name when it is locked: one that has a name and no lock is dead, and stays so. `None`: it was
    /// removed before that.
    fn lock(spot: &Spot) -> Result<Option<Flocked>> {
        let unnamed = spot.with_ending("new");
        let Some(opened) = Opened::at(&unnamed, true)? else { return Ok(None) };
        let Ok(locked) = opened.attempt(Mode::Exclusive, &unnamed)? else { return Ok(None) };
        Ok(unnamed.replace(spot)?.then_some(locked))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // If it cannot be removed, it is not locked any more, and the next one sweeps it.
        self.spot.remove();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::folder::Folder;

    fn sessions(folder: &Path) -> Sessions {
        Sessions::new(Folder::open(folder).unwrap().spot(""))
    }

    #[test]
    fn a_session_lives_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (sessions(dir.path()), sessions(dir.path()));
        let (id, began) = ours.ours().unwrap();
        assert!(began && !ours.ours().unwrap().1);
        for sessions in [&ours, &theirs] {
            assert!(sessions.lives(&id, &mut Census::new()).unwrap());
        }
        assert!(theirs.dead(&mut Census::new()).unwrap().is_empty());
        ours.end();
        assert!(!theirs.lives(&id, &mut Census::new()).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_nobody_keeps_locked_is_dead_and_can_be_buried() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = sessions(dir.path());
        let (ours, _) = sessions.ours().unwrap();
        let left = Uuid::new_v4().simple().to_string();
        fs::write(dir.path().join(&left), "pid 1\n").unwrap();
        let dead = sessions.dead(&mut Census::new()).unwrap();
        assert_eq!(dead, [left]);
        sessions.bury(&dead);
        assert_eq!(Folder::open(dir.path()).unwrap().spot("").names().unwrap(), [&*ours]);
    }

    #[test]
    fn a_session_that_begins_is_not_taken_for_a_dead_one() {
        let dir = tempfile::tempdir().unwrap();
        let begin_and_sweep = || {
            for _ in 0..200 {
                let sessions = sessions(dir.path());
                let (id, _) = sessions.ours().unwrap();
                sessions.bury(&sessions.dead(&mut Census::new()).unwrap());
                assert!(sessions.lives(&id, &mut Census::new()).unwrap());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(begin_and_sweep);
            }
        });
        assert_eq!(Folder::open(dir.path()).unwrap().spot("").names().unwrap(), [""; 0]);
    }

    #[test]
    fn a_session_whose_file_was_cleaned_away_is_mended() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (sessions(dir.path()), sessions(dir.path()));
        let (id, _) = ours.ours().unwrap();
        fs::remove_file(dir.path().join(&*id)).unwrap();
        assert!(!theirs.lives(&id, &mut Census::new()).unwrap());
        ours.mend().unwrap();
        assert!(theirs.lives(&id, &mut Census::new()).unwrap());
    }

    #[test]
    fn an_id_that_leads_elsewhere_is_dead() {
        let dir = tempfile::tempdir().unwrap();
        for id in ["", ".", "..", "../k.lock", "/etc/passwd", "a\0b"] {
            assert!(!sessions(dir.path()).lives(id, &mut Census::new()).unwrap(), "{id:?}");
        }
    }
}

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_core::{Mode, OwnerId, Result};

use crate::error::unavailable;
use crate::file_lock::{FileLock, OpenFile};
use crate::open_dir::{For, PathAt};

/// Tells which of the holders whose records are in the directory are alive.
///
/// Every backend keeps one file locked from its first grant to its end: its session. Each of its records names that file.
/// So the kernel can be asked whether a record counts, without touching the lock of the key: a test of that lock would
/// hold it, for an instant, and keep it from a process that tries to acquire it. Process ids do not serve: they are
/// used again, and mean something else in every container.
#[derive(Debug)]
pub(crate) struct Sessions {
    dir: Mutex<PathAt>,
    ours: Mutex<Option<Session>>,
}

#[derive(Debug)]
struct Session {
    id: Arc<str>,
    path: PathAt,
    locked: FileLock,
}

/// The sessions that one operation has asked about, and whether each was alive: none is asked about twice.
#[derive(Debug, Default)]
pub(crate) struct LivenessCache(HashMap<String, Liveness>);

/// What the file of a session tells of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Alive,
    Dead,
    /// There is no such file: the process is dead, or something cleaned up.
    Unknown,
}

impl Sessions {
    pub(crate) fn new(dir: PathAt) -> Self {
        Self { dir: Mutex::new(dir), ours: Mutex::new(None) }
    }

    /// Moves our session's file to another directory. The records there name the same session.
    pub(crate) fn move_to(&self, dir: &PathAt) -> Result<()> {
        *self.dir.lock().unwrap_or_else(PoisonError::into_inner) = dir.clone();
        let mut ours = self.lock();
        let Some(session) = &mut *ours else { return Ok(()) };
        dir.create_dir()?;
        session.path = dir.below(&session.id);
        session.restore_file()
    }

    fn dir(&self) -> PathAt {
        self.dir.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The id of our session, and whether this call began it.
    pub(crate) fn current(&self) -> Result<(Arc<str>, bool)> {
        let mut ours = self.lock();
        if let Some(session) = &*ours {
            return Ok((Arc::clone(&session.id), false));
        }
        let dir = self.dir();
        dir.create_dir()?;
        let session = Session::begin(&dir)?;
        let id = Arc::clone(&session.id);
        *ours = Some(session);
        Ok((id, true))
    }

    /// Creates our session's file anew if it was removed: our records name it.
    pub(crate) fn restore_file(&self) -> Result<()> {
        match &mut *self.lock() {
            Some(session) => session.restore_file(),
            None => Ok(()),
        }
    }

    /// Ends our session. Its records count no more.
    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    pub(crate) fn liveness(&self, id: &str, cache: &mut LivenessCache) -> Result<Liveness> {
        if let Some(known) = cache.0.get(id) {
            return Ok(*known);
        }
        let alive = self.probe(id)?;
        cache.0.insert(id.to_owned(), alive);
        Ok(alive)
    }

    /// The ids of the sessions whose process ended without removing the session's file.
    pub(crate) fn dead(&self, cache: &mut LivenessCache) -> Result<Vec<String>> {
        let mut dead = Vec::new();
        for id in self.dir().names()? {
            if is_id(&id) && self.liveness(&id, cache)? == Liveness::Dead {
                dead.push(id);
            }
        }
        Ok(dead)
    }

    /// Removes the files of dead sessions.
    pub(crate) fn remove(&self, dead: &[String]) {
        for id in dead {
            // Another process may have removed it before.
            self.dir().below(id).remove();
        }
    }

    fn probe(&self, id: &str) -> Result<Liveness> {
        if !is_id(id) {
            return Ok(Liveness::Dead);
        }
        let path = self.dir().below(id);
        let Some(opened) = OpenFile::at(&path, For::Reading)? else { return Ok(Liveness::Unknown) };
        // Shared, so that two processes that probe at once do not take each other for the session.
        Ok(if opened.try_lock(Mode::Shared, &path)?.is_err() { Liveness::Alive } else { Liveness::Dead })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the text is an id of a session. A record can contain anything; it must not lead out of the directory.
fn is_id(text: &str) -> bool {
    OwnerId::parse_hex(text).is_some()
}

impl Session {
    fn begin(dir: &PathAt) -> Result<Self> {
        const TRIES: u32 = 16;
        for _ in 0..TRIES {
            let id = OwnerId::random().to_hex();
            let path = dir.below(&id);
            if let Some(locked) = Self::create_file(&path)? {
                return Ok(Self { id: id.into(), path, locked });
            }
        }
        Err(unavailable(dir, "does not keep files; is something cleaning up there?"))
    }

    fn restore_file(&mut self) -> Result<()> {
        if !self.path.exists()?
            && let Some(locked) = Self::create_file(&self.path)?
        {
            self.locked = locked;
        }
        Ok(())
    }

    /// Creates and locks the session's file. The file gets its name when it is locked already: a file that has its name
    /// and no lock belongs to a dead session. `None` if the file was removed before it got its name.
    fn create_file(path: &PathAt) -> Result<Option<FileLock>> {
        let unnamed = path.with_ending("new");
        let Some(opened) = OpenFile::at(&unnamed, For::Creating)? else { return Ok(None) };
        let Ok(locked) = opened.try_lock(Mode::Exclusive, &unnamed)? else { return Ok(None) };
        Ok(unnamed.rename_to(path)?.then_some(locked))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // If it cannot be removed, it is not locked any more, and the next session that begins removes it.
        self.path.remove();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::open_dir::OpenDir;

    fn liveness(sessions: &Sessions, id: &str) -> Liveness {
        sessions.liveness(id, &mut LivenessCache::default()).unwrap()
    }

    fn sessions(dir: &Path) -> Sessions {
        Sessions::new(OpenDir::open(dir).unwrap().path_to(""))
    }

    #[test]
    fn a_session_that_begins_is_not_taken_for_a_dead_one() {
        let dir = tempfile::tempdir().unwrap();
        let begin_and_remove_dead = || {
            for _ in 0..200 {
                let sessions = sessions(dir.path());
                let (id, _) = sessions.current().unwrap();
                sessions.remove(&sessions.dead(&mut LivenessCache::default()).unwrap());
                assert_eq!(liveness(&sessions, &id), Liveness::Alive);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(begin_and_remove_dead);
            }
        });
        assert_eq!(OpenDir::open(dir.path()).unwrap().path_to("").names().unwrap(), [""; 0]);
    }

    #[test]
    fn an_id_that_leads_elsewhere_is_dead() {
        let dir = tempfile::tempdir().unwrap();
        for id in ["", ".", "..", "../k.lock", "/etc/passwd", "a\0b"] {
            assert_eq!(liveness(&sessions(dir.path()), id), Liveness::Dead, "{id:?}");
        }
    }
}

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::file_lock::OpenFile;
use crate::open_dir::PathAt;

/// Lock files that are open and not locked. They are kept because a key is often acquired again soon.
///
/// A file is here or in use, never both: two uses of one open file would not exclude each other.
#[derive(Debug)]
pub(crate) struct IdleFiles {
    most: usize,
    files: Mutex<VecDeque<(PathAt, OpenFile)>>,
}

impl IdleFiles {
    pub(crate) const MOST: usize = 16;

    pub(crate) fn new(most: usize) -> Self {
        Self { most, files: Mutex::default() }
    }

    pub(crate) fn take(&self, path: &PathAt) -> Option<OpenFile> {
        let mut idle = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|(kept, _)| kept.full().as_os_str() == path.full().as_os_str())?;
        idle.remove(at).map(|(_, opened)| opened)
    }

    pub(crate) fn keep(&self, path: PathAt, opened: OpenFile) {
        let mut idle = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push_front((path, opened));
        idle.truncate(self.most);
    }

    pub(crate) fn clear(&self) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_dir::{For, OpenDir};

    #[test]
    fn a_file_is_kept_until_it_is_taken_or_pushed_out() {
        let dir = tempfile::tempdir().unwrap();
        let idle = IdleFiles::new(IdleFiles::MOST);
        let open_dir = OpenDir::open(dir.path()).unwrap();
        let path = |number: usize| open_dir.path_to(&number.to_string());
        for number in 0..=IdleFiles::MOST {
            idle.keep(path(number), OpenFile::at(&path(number), For::Creating).unwrap().unwrap());
        }
        assert!(idle.take(&path(0)).is_none());
        assert!(idle.take(&path(1)).is_some());
        assert!(idle.take(&path(1)).is_none());
        idle.clear();
        assert!(idle.take(&path(2)).is_none());
    }
}

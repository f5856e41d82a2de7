//! The shared suite, on a directory of its own.

use std::path::PathBuf;

use async_trait::async_trait;
use leasehold_file::core::conformance::{Fixture, Suite};
use leasehold_file::{Capabilities, FileBackend, FileLocks, Result};

/// Where a helper process finds the directory of the suite.
const DIRECTORY: &str = "LEASEHOLD_FILE_TEST_DIRECTORY";

struct Files {
    directory: PathBuf,
    /// Removed at the end by whoever made it.
    _made: Option<tempfile::TempDir>,
}

impl Files {
    fn new() -> Self {
        if let Some(directory) = std::env::var_os(DIRECTORY) {
            return Self { directory: directory.into(), _made: None };
        }
        let made = tempfile::tempdir().expect("a temporary directory");
        Self { directory: made.path().to_owned(), _made: Some(made) }
    }
}

pub(crate) fn suite() -> Suite {
    Suite::shared([("", Files::new())])
}

#[async_trait]
impl Fixture for Files {
    type Backend = FileBackend;

    fn capabilities(&self) -> Capabilities {
        FileLocks::claims()
    }

    async fn connect(&self, namespace: &str) -> Result<FileBackend> {
        FileBackend::open(&self.directory, namespace)
    }

    fn environment(&self) -> Vec<(String, String)> {
        vec![(DIRECTORY.to_owned(), self.directory.display().to_string())]
    }
}

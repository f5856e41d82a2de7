/// How a directory is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirOptions {
    /// Whether it is created if it does not exist.
    pub(crate) creates: bool,
    /// Whether the caller says that its file system is of this machine alone, so that nobody has to know the file system.
    pub(crate) is_local: bool,
    /// Whether programs that this process starts inherit the files in it, and the locks on them.
    pub(crate) inherited: bool,
}

impl Default for DirOptions {
    fn default() -> Self {
        Self { creates: true, is_local: false, inherited: false }
    }
}

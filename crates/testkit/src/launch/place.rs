use std::env;
use std::path::{Path, PathBuf};

/// The file system in memory of Linux.
const MEMORY: &str = "/dev/shm";

/// The room that it has to have: containers often have 64 MB.
const ROOM: u64 = 4 << 30;

/// The folder for the data of servers: in memory where there is room, because servers mostly wait for their disk.
pub fn place() -> PathBuf {
    let has_room = rustix::fs::statvfs(MEMORY).is_ok_and(|room| room.f_bavail.saturating_mul(room.f_frsize) >= ROOM);
    if has_room { Path::new(MEMORY).to_path_buf() } else { env::temp_dir() }
}

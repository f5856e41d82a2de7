//! What systemd hands to a service, and what a service tells it: see `sd_listen_fds(3)` and `sd_notify(3)`.

use std::env;
use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// The first descriptor that is handed over.
const FIRST: RawFd = 3;

/// The service manager of this process, if it has one.
#[derive(Debug, Default)]
pub struct Systemd {
    notify: Option<SocketAddrUnix>,
    /// How many descriptors it stores for the next process of this service.
    pub(crate) room: usize,
}

/// A descriptor that was handed over, and its name.
pub(crate) type Handed = (String, OwnedFd);

impl Systemd {
    /// What the environment says.
    ///
    /// # Errors
    /// When the address to notify is none.
    pub fn of_this_process() -> io::Result<Self> {
        let address = |path: std::ffi::OsString| match path.to_str().and_then(|path| path.strip_prefix('@')) {
            Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
            None => SocketAddrUnix::new(path),
        };
        let notify = env::var_os("NOTIFY_SOCKET").map(address).transpose()?;
        let room = number("FDSTORE").filter(|_| notify.is_some()).unwrap_or(0);
        Ok(Self { notify, room })
    }

    /// Tells it a state, such as `READY=1`, and about these descriptors.
    pub(crate) fn tell(&self, state: &str, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let Some(address) = &self.notify else { return Ok(()) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        let socket = UnixDatagram::unbound()?;
        sendmsg_addr(&socket, address, &[IoSlice::new(state.as_bytes())], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// The descriptors that are for this process.
pub(crate) fn handed() -> io::Result<Vec<Handed>> {
    let is_ours = number("LISTEN_PID") == usize::try_from(getpid().as_raw_pid()).ok();
    let count = number::<RawFd>("LISTEN_FDS").filter(|_| is_ours).unwrap_or(0);
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':').map(str::to_owned);
    if count == 0 {
        return Ok(Vec::new());
    }
    let ours = pidfd_open(getpid(), PidfdFlags::empty())?;
    // A number is made a descriptor without `unsafe` by asking the kernel for a copy.
    let copy = |number| pidfd_getfd(&ours, number, PidfdGetfdFlags::empty());
    (FIRST..FIRST.saturating_add(count)).map(|number| Ok((names.next().unwrap_or_default(), copy(number)?))).collect()
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    env::var(variable).ok()?.parse().ok()
}

/// Text in memory, as a descriptor.
pub(crate) fn in_memory(text: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("leasehold", MemfdFlags::CLOEXEC)?);
    file.write_all(text)?;
    Ok(file.into())
}

/// The text of such a descriptor.
pub(crate) fn from_memory(fd: OwnedFd) -> io::Result<Vec<u8>> {
    let (mut file, mut text) = (File::from(fd), Vec::new());
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(text)
}

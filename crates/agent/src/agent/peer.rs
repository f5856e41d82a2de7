//! Who is at the other end of a Unix socket: what the kernel says, and nothing that the client says.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::unix::UCred;
use tokio::task::spawn_blocking;

use crate::policy::Names;

/// A client of the agent.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) uid: u32,
    pub(crate) names: Names,
    label: String,
    /// `None` where this process does not see the client's: the two are in different containers.
    process: Option<Arc<OwnedFd>>,
}

impl Peer {
    /// Reads the names of users and groups at each call, so that a change counts for the next client.
    pub(crate) fn of(credentials: &UCred) -> Self {
        let (uid, gid) = (credentials.uid(), credentials.gid());
        let user = user_name(&accounts("/etc/passwd"), uid);
        let names = Names {
            user: user.iter().cloned().chain([uid.to_string()]).collect(),
            groups: groups(&accounts("/etc/group"), user.as_deref(), gid),
        };
        let host = rustix::system::uname();
        let user = user.unwrap_or_else(|| format!("uid{uid}"));
        let mut label = format!("{user}@{}", host.nodename().to_string_lossy());
        if let Some(pid) = credentials.pid() {
            let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            label = format!("{label} pid {pid} {}", program.trim_end());
        }
        let process = credentials.pid().and_then(Pid::from_raw);
        let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok()).map(Arc::new);
        Self { uid, names, label: label.trim_end().to_owned(), process }
    }

    /// Whether the process has ended, or does so now: its connections are closed a moment before.
    pub(crate) async fn has_ended(&self) -> bool {
        const MOMENT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
        let Some(process) = self.process.clone() else { return false };
        let ended = spawn_blocking(move || poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&MOMENT)));
        ended.await.is_ok_and(|ended| ended == Ok(1))
    }

    /// What others are shown of it: the kernel's word first, and then its own.
    pub(crate) fn label(&self, own: Option<&str>) -> String {
        own.map_or_else(|| self.label.clone(), |own| format!("{} ({own})", self.label))
    }
}

/// A file of users or groups.
pub(crate) fn accounts(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

fn user_name(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let mut fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    fields.find_map(|fields| (fields.get(2) == Some(&uid.as_str())).then(|| fields[0].to_owned()))
}

/// The names and numbers of the groups of a user, the one of the process first.
fn groups(group: &str, user: Option<&str>, gid: u32) -> Vec<String> {
    let gid = gid.to_string();
    let mut all = vec![gid.clone()];
    for line in group.lines() {
        let fields: Vec<_> = line.split(':').collect();
        let [name, _, number, members] = fields.as_slice() else { continue };
        if *number == gid || user.is_some_and(|user| members.split(',').any(|member| member == user)) {
            all.extend([(*name).to_owned(), (*number).to_owned()]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_have_the_names_of_the_system() {
        let passwd = "root:x:0:0:root:/:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(user_name(passwd, 1000).as_deref(), Some("ada"));
        assert_eq!(user_name(passwd, 7), None);
        let group = "root:x:0:\nbroken:1\nada:x:1000:\nbilling:x:50:grace,ada\nother:x:51:adam\n";
        assert_eq!(groups(group, Some("ada"), 1000), ["1000", "ada", "1000", "billing", "50"]);
        assert_eq!(groups(group, None, 7), ["7"]);
    }
}

//! Installs the programs of the servers, on request.

use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::{self, Command};

use leasehold_testkit::launch::{find, is_root};

use crate::command::succeed;
use crate::services;

/// Installs the missing programs with the system's package manager, without starting a service of the system.
pub(crate) fn run() -> Result<(), String> {
    // The client in Python of docs/clients is tested beside ours.
    let python = find("python3").is_none().then_some("python3");
    let missing = services::missing_programs().into_iter().chain(python);
    let mut packages: Vec<&str> = missing.map(package).collect();
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    if !is_root() || find("apt-get").is_none() {
        println!("--install works as root on Debian and its kin; elsewhere install by hand: {}", packages.join(", "));
        return Ok(());
    }
    let muted = env::temp_dir().join(format!("leasehold-install-{}", process::id()));
    let installed = mute_services(&muted).and_then(|()| apt_get_install(&packages, &muted));
    drop(fs::remove_dir_all(&muted));
    installed
}

fn apt_get_install(packages: &[&str], muted: &Path) -> Result<(), String> {
    let path = format!("DPkg::Path={}:/usr/sbin:/usr/bin:/sbin:/bin", muted.display());
    apt_get(&["update"])?;
    // Patience, for a machine that is just updating itself.
    let options = ["-o", "DPkg::Lock::Timeout=120", "-o", &path, "install", "-y", "--no-install-recommends"];
    apt_get(&[&options, packages].concat())?;
    if find("systemctl").is_some() {
        // A service that was just installed must not come up with the next boot either.
        let services = ["redis-server", "mariadb", "postgresql", "pgbouncer", "etcd"]
            .into_iter()
            .filter(|s| packages.iter().any(|p| p.starts_with(s)));
        drop(Command::new("systemctl").args(["--quiet", "disable"]).args(services).output());
    }
    Ok(())
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    println!("apt-get {}", arguments.join(" "));
    succeed(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Replaces the two programs with which a package starts its service by stand-ins that do nothing.
fn mute_services(folder: &Path) -> Result<(), String> {
    let create = || -> std::io::Result<()> {
        DirBuilder::new().mode(0o755).create(folder)?;
        for name in ["invoke-rc.d", "deb-systemd-invoke"] {
            let file = folder.join(name);
            fs::write(&file, "#!/bin/sh\nexit 0\n")?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    };
    create().map_err(|e| format!("{}: {e}", folder.display()))
}

/// The Debian package that contains the program.
fn package(program: &str) -> &str {
    match program {
        "postgres" | "initdb" => "postgresql",
        "etcd" => "etcd-server",
        "etcdctl" => "etcd-client",
        "mariadbd" | "mariadb-install-db" => "mariadb-server",
        alike => alike,
    }
}

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Issues certificates for a test, by the program `openssl`.
#[derive(Debug)]
pub struct Authority {
    folder: TempDir,
    cert: PathBuf,
}

/// A certificate and its private key, as files.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Authority {
    /// A new one, which nobody trusts. `None`: `openssl` is not installed.
    pub fn new() -> Option<Self> {
        Command::new("openssl").arg("version").output().ok()?;
        let folder = tempfile::tempdir().expect("a temporary directory");
        let authority = Self { cert: folder.path().join("ca.crt"), folder };
        authority.make("ca", "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign", &[]);
        Some(authority)
    }

    /// The file with its own certificate: whoever trusts that, trusts all that it issues.
    pub fn cert(&self) -> &Path {
        &self.cert
    }

    /// What a server needs to be of this authority: its certificate, and that and the key of the server.
    pub fn files<'i>(&'i self, issued: &'i Issued) -> [&'i Path; 3] {
        [&self.cert, &issued.cert, &issued.key]
    }

    /// A certificate for a server or client that is called `name`, valid for what `names` says, such as
    /// `IP:127.0.0.1,DNS:localhost`.
    pub fn issue(&self, name: &str, names: &str) -> Issued {
        let extensions = format!("basicConstraints=critical,CA:FALSE\nsubjectAltName={names}");
        let key = self.folder.path().join("ca.key");
        let signed: [&Path; 4] = [Path::new("-CA"), &self.cert, Path::new("-CAkey"), &key];
        self.make(name, &extensions, &signed)
    }

    fn make(&self, name: &str, extensions: &str, arguments: &[&Path]) -> Issued {
        let file = |ending: &str| self.folder.path().join(format!("{name}.{ending}"));
        let (config, issued) = (file("cnf"), Issued { cert: file("crt"), key: file("key") });
        let settings =
            format!("[req]\nprompt=no\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\nCN={name}\n[ext]\n");
        std::fs::write(&config, settings + extensions + "\n").expect("a file for openssl");
        let done = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
            .args([Path::new("-config"), &config, Path::new("-keyout"), &issued.key, Path::new("-out"), &issued.cert])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("openssl runs");
        assert!(done.status.success(), "openssl: {}", String::from_utf8_lossy(&done.stderr));
        issued
    }
}

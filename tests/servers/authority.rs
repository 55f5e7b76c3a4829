//! Certificates of an authority that nobody else knows.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::node::base;

/// A certificate authority, whose files are gone with it.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

/// What a server proves its name with. Another one takes its place when it is issued under the same file name.
pub(crate) struct Certificate {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("it signs itself");
        let directory = tempfile::Builder::new().prefix("mqguard-tls-").tempdir_in(base()).expect("a directory of its own");
        std::fs::write(directory.path().join("authority.pem"), issuer.pem()).expect("a file");
        Self { issuer, directory }
    }

    /// For `localhost`.
    pub(crate) fn good(&self, file: &str) -> Certificate {
        self.issue(file, "localhost", 2999)
    }

    /// For that host, until the year begins.
    pub(crate) fn issue(&self, file: &str, host: &str, until: i32) -> Certificate {
        let mut params = CertificateParams::new([host.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("it is signed");
        let [certificate, key_file] = ["pem", "key"].map(|end| self.directory.path().join(format!("{file}.{end}")));
        std::fs::write(&certificate, signed.pem()).expect("a file");
        std::fs::write(&key_file, key.serialize_pem()).expect("a file");
        // PostgreSQL takes no key that others may read.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&key_file, private).expect("it is ours");
        Certificate { certificate, key: key_file }
    }

    /// Its own certificate, for who is to trust it.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }
}

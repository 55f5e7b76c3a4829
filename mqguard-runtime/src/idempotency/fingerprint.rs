use md5::{Digest, Md5};

/// Tells the bodies of two messages apart: a message that comes under a known identity with another body is not the same message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// The first eight bytes of the body's MD5.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        let digest: [u8; 16] = Md5::digest(body).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

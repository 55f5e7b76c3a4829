use sha2::{Digest, Sha256};

use super::super::identity::Identity;

/// The most bytes of a part that a column holds as they are.
const LONGEST: usize = 512;
/// Begins what stands for a part that a column cannot hold as it is.
const DIGEST: &str = "sha256:";

/// The key of a row: the three parts of an identity, readable where they can be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) consumer: String,
    pub(super) business_key: String,
    pub(super) msg_id: String,
}

impl Key {
    pub(super) fn of(identity: &Identity) -> Self {
        Self {
            consumer: column(identity.consumer()),
            business_key: column(identity.business_key()),
            msg_id: column(identity.message_id()),
        }
    }

    /// As errors name it.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}/{}", self.consumer, self.business_key, self.msg_id)
    }
}

/// A part as a column holds it. Two parts are never the same there: what is too long, or has a byte that PostgreSQL has no text for, is
/// not cut but replaced by its digest, and so is what looks like one.
fn column(part: &str) -> String {
    if part.len() <= LONGEST && !part.contains('\0') && !part.starts_with(DIGEST) {
        return part.to_owned();
    }
    let digest = Sha256::digest(part.as_bytes());
    digest.iter().fold(DIGEST.to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_as_it_is() {
        for part in ["", "42", "a ", "á", "😀", &"x".repeat(LONGEST)] {
            assert_eq!(column(part), part);
        }
    }

    #[test]
    fn what_does_not_fit_is_told_apart_by_its_digest() {
        let long = "x".repeat(LONGEST + 1);
        let odd = [long.clone(), format!("{long}y"), "a\0".into(), "a\0b".into(), column(&long)];
        let columns: std::collections::HashSet<String> = odd.iter().map(|part| column(part)).collect();
        assert_eq!(columns.len(), odd.len());
        assert!(columns.iter().all(|column| column.len() == DIGEST.len() + 64 && column.starts_with(DIGEST)), "{columns:?}");
        // Of the empty string, by the standard.
        assert_eq!(Sha256::digest(b"")[..4], [0xe3, 0xb0, 0xc4, 0x42]);
    }
}

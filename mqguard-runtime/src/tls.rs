//! What TLS says of a server that it does not trust.

use std::error::Error;

/// Why no session came about, and what helps, when that does not pass by itself: a certificate that is not trusted, or no TLS at all.
#[cfg(feature = "tls")]
pub(crate) fn refusal(error: &(dyn Error + 'static)) -> Option<String> {
    use std::sync::Arc;

    use rustls::AlertDescription::{CloseNotify, InternalError, UserCanceled};

    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return match error {
                rustls::Error::AlertReceived(InternalError | CloseNotify | UserCanceled) => None,
                rustls::Error::InvalidCertificate(_) => Some(format!(
                    "no TLS session came about: {error}; trusted are the authorities of this system, or, instead of them, those in the \
                     file that the environment variable SSL_CERT_FILE names"
                )),
                rustls::Error::InvalidMessage(_) => Some("no TLS session came about: what answers speaks no TLS".to_owned()),
                _ => Some(format!("no TLS session came about: {error}")),
            };
        }
        // What these wrap is not their source: that is the source of what they wrap.
        let shared = error.downcast_ref::<Arc<dyn Error + Send + Sync>>();
        next = match (error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref), shared) {
            (Some(wrapped), _) => Some(wrapped),
            (None, Some(shared)) => Some(&**shared),
            (None, None) => error.source(),
        };
    }
    None
}

/// There is no TLS in this build.
#[cfg(not(feature = "tls"))]
pub(crate) fn refusal(_: &(dyn Error + 'static)) -> Option<String> {
    None
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io;
    use std::sync::Arc;

    use rustls::{AlertDescription, CertificateError, InvalidMessage};

    use super::*;

    fn wrapped(error: rustls::Error) -> io::Error {
        let shared: Arc<dyn Error + Send + Sync> = Arc::new(io::Error::new(io::ErrorKind::InvalidData, error));
        io::Error::other(shared)
    }

    #[test]
    fn what_does_not_pass_is_found_however_deep_it_is() {
        let told = refusal(&wrapped(CertificateError::UnknownIssuer.into())).unwrap();
        assert!(told.contains("UnknownIssuer") && told.contains("SSL_CERT_FILE"), "{told}");
        let told = refusal(&wrapped(InvalidMessage::InvalidContentType.into())).unwrap();
        assert!(told.ends_with("speaks no TLS"), "{told}");
    }

    #[test]
    fn what_passes_is_no_refusal() {
        assert_eq!(refusal(&wrapped(rustls::Error::AlertReceived(AlertDescription::InternalError))), None);
        assert_eq!(refusal(&io::Error::from(io::ErrorKind::UnexpectedEof)), None);
        assert_eq!(refusal(&io::Error::other("reset")), None);
    }
}

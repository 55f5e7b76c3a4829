/// The URL of a store that cannot be used. Says why, and shows nothing of the URL: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store's URL cannot be used: {0}")]
pub struct InvalidUrl(pub String);

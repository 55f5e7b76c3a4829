//! Publishing with an answer: confirmed, mandatory, persistent.

mod publisher;

pub use publisher::{Draft, EncodeError, Publisher};

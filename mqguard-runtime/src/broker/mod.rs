//! What carries messages.

mod headers;
mod message;
mod topology;

pub use headers::{HeaderValue, Headers};
pub use message::{Message, Properties};
pub use topology::{ExchangeKind, QueueType};

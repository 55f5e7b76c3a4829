//! What a user builds and runs.

mod builder;
mod check;
mod error;
mod purge;
mod running;
mod stores;
#[cfg(feature = "testing")]
mod testing;
mod url;

pub use builder::Guard;
pub use error::{ConfigError, Error, Result};
pub use running::Running;

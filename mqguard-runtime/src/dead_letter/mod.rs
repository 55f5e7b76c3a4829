//! The dead letter: what it tells, how it is written into a frame, and how it is read.

mod broker;
mod budget;
mod letter;
mod read;
mod reason;

pub(crate) use broker::BrokerDeath;
pub(crate) use budget::fit_copy;
pub(crate) use letter::{Death, letter};
pub use read::DeadLetter;
pub use reason::Reason;

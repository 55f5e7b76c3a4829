//! The claim protocol and the stores that keep its records.

mod contract;
mod identity;

pub use contract::{Claim, ClaimRequest, Hold, Owner, Settled, Step, Store, StoreError, Turn};
pub use identity::Identity;

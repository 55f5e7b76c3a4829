//! Message consumers that are correct by declaration.

pub use mqguard_macros::*;
pub use mqguard_runtime::*;

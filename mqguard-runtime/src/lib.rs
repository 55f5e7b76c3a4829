//! The machinery of mqguard. Depend on the crate `mqguard`, which re-exports what is public here.

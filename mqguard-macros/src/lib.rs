//! The macros of mqguard.

//! From syntax to validated values: the rules between keys, of the signature, and of the variants of an error.

pub(crate) mod attribute;
pub(crate) mod classes;
mod horizon;
pub(crate) mod signature;
pub(crate) mod transaction;

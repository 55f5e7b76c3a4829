//! Message consumers that are correct by declaration.

//! From tokens to syntax: every key and value with its place, every fault reported where it is.

pub(crate) mod classes;
pub(crate) mod consumer;
pub(crate) mod duration;
mod entries;
pub(crate) mod field;
pub(crate) mod function;
mod keys;
mod number;
pub(crate) mod slot;
#[cfg(test)]
mod typos;
pub(crate) mod value;

pub(crate) use entries::visible;

/// Syntax as a person would write it.
pub(crate) fn text_of(syntax: &impl quote::ToTokens) -> String {
    entries::compact(&visible(syntax.to_token_stream()))
}

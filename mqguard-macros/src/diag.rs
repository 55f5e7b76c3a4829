//! What the user reads: a sink that collects every mistake, and "did you mean".

use std::fmt::Display;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};

/// A stretch of the user's source, from the start of one token to the end of another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    start: Span,
    end: Span,
}

impl Place {
    /// All of `tokens`; without any, `otherwise`.
    pub(crate) fn of(tokens: &[TokenTree], otherwise: Span) -> Self {
        let start = tokens.first().map_or(otherwise, TokenTree::span);
        Self { start, end: tokens.last().map_or(otherwise, TokenTree::span) }
    }

    /// All of what `syntax` was read from.
    pub(crate) fn of_syntax(syntax: &impl ToTokens) -> Self {
        let tokens: Vec<TokenTree> = syntax.to_token_stream().into_iter().collect();
        Self::of(&tokens, Span::call_site())
    }

    /// From the start of this place to the end of that one.
    pub(crate) fn to(self, end: Self) -> Self {
        Self { start: self.start, end: end.end }
    }

    /// From the one that comes first in the source to the end of the other.
    pub(crate) fn around(self, other: Self) -> Self {
        let position = |place: Self| (place.start.start().line, place.start.start().column);
        if position(self) <= position(other) { self.to(other) } else { other.to(self) }
    }

    /// Where it starts and where it ends.
    pub(crate) fn ends(self) -> (Span, Span) {
        (self.start, self.end)
    }

    /// For tokens that the compiler should blame on this place.
    pub(crate) fn span(self) -> Span {
        self.start.join(self.end).unwrap_or(self.start)
    }
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        Self { start: span, end: span }
    }
}

/// Collects mistakes, so that all are reported at once, and the keys that were read.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    mistakes: Vec<(Place, String)>,
    /// What stands where a key is expected, with the name of the level.
    keys: Vec<(&'static str, Ident)>,
}

impl Sink {
    /// Reports a mistake.
    pub(crate) fn error(&mut self, at: impl Into<Place>, message: impl Display) {
        self.mistakes.push((at.into(), message.to_string()));
    }

    /// Notes a key of a level.
    pub(crate) fn key(&mut self, level: &'static str, key: &Ident) {
        self.keys.push((level, key.clone()));
    }

    pub(crate) fn keys(&self) -> &[(&'static str, Ident)] {
        &self.keys
    }

    /// Takes over what another sink has collected.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.mistakes.extend(other.mistakes);
        self.keys.extend(other.keys);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// The messages, in the order in which they were found.
    #[cfg(test)]
    pub(crate) fn messages(&self) -> Vec<&str> {
        self.mistakes.iter().map(|(_, message)| message.as_str()).collect()
    }

    /// One `compile_error!` for each mistake.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.mistakes.into_iter().map(|(at, message)| compile_error(at, &message)).collect()
    }
}

fn compile_error(at: Place, message: &str) -> TokenStream {
    let mut text = Group::new(Delimiter::Brace, quote_spanned!(at.end=> #message));
    text.set_span(at.end);
    quote_spanned!(at.start=> ::core::compile_error! #text)
}

/// The word of `known` that was most likely meant by `word`, if one is near enough.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, candidate)| (distance, !candidate.starts_with(word.get(..1).unwrap_or_default())))
        .map(|(_, candidate)| candidate)
}

/// How many letters must be inserted, removed, replaced or swapped with their neighbour to make `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// `` `a`, `b` or `c` ``
pub(crate) fn alternatives<'a>(words: impl IntoIterator<Item = &'a str>, quote: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("{quote}{word}{quote}")).collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("queue", "queue", 0),
            ("quue", "queue", 1),
            ("retyr", "retry", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn far_words_suggest_nothing() {
        let known = ["queue", "retry", "dlq", "max"];
        for word in ["", "x", "banana", "qu", "ttl", "d", "maxim"] {
            assert_eq!(nearest(word, known), None, "{word}");
        }
        assert_eq!(nearest("Queue", known), Some("queue"));
    }

    #[test]
    fn words_are_listed_as_one_says_them() {
        assert_eq!(alternatives([], "`"), "");
        assert_eq!(alternatives(["a"], "`"), "`a`");
        assert_eq!(alternatives(["a", "b", "c"], "\""), "\"a\", \"b\" or \"c\"");
    }
}

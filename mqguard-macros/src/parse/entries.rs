//! The text of an attribute, entry by entry: `key`, `key = value`, `key(...)`.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

use super::keys::{Key, Level, Lookup};
use crate::diag::{Place, Sink};

/// One entry of a list of keys.
pub(crate) struct Entry {
    /// What the table says of the key.
    pub(crate) key: &'static Key,
    /// Where the key is.
    pub(crate) at: Span,
    pub(crate) value: Value,
}

/// What follows a key.
pub(crate) enum Value {
    Nothing,
    /// `= tokens`; never empty.
    Assigned(Vec<TokenTree>),
    /// `(tokens)`
    Listed(Group),
}

impl Entry {
    /// Where the value is; the key where there is none.
    pub(crate) fn value_at(&self) -> Place {
        match &self.value {
            Value::Nothing => self.at.into(),
            Value::Assigned(tokens) => Place::of(tokens, self.at),
            Value::Listed(group) => group.span().into(),
        }
    }

    /// The entry as the user wrote it, for a message; a list is shortened.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            Value::Nothing => self.key.name.to_owned(),
            Value::Assigned(tokens) => format!("{} = {}", self.key.name, compact(tokens)),
            Value::Listed(_) => format!("{}(...)", self.key.name),
        }
    }
}

/// Tokens as text, without the spaces that printing a token stream puts between them.
pub(crate) fn compact(tokens: &[TokenTree]) -> String {
    let mut text = String::new();
    for token in tokens {
        let word = matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_));
        if word && text.ends_with(|last: char| last.is_alphanumeric() || last == '"' || last == ',') {
            text.push(' ');
        }
        text += &token.to_string();
    }
    text
}

/// The tokens without the invisible groups that `macro_rules!` leaves around what it passes on.
pub(crate) fn visible(tokens: TokenStream) -> Vec<TokenTree> {
    let mut visible_tokens = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => visible_tokens.extend(visible(group.stream())),
            token => visible_tokens.push(token),
        }
    }
    visible_tokens
}

pub(crate) fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

/// Reads a list of keys and hands each entry that is well formed to `take`. After a fault it goes on behind the next comma.
///
/// Returns the keys that belong at another level.
pub(crate) fn each_entry(
    level: &'static Level,
    tokens: TokenStream,
    sink: &mut Sink,
    mut take: impl FnMut(&Entry, &mut Sink),
) -> Vec<String> {
    let mut misplaced = Vec::new();
    for (mut part, comma) in split_at_commas(semicolons_to_commas(visible(tokens), sink)) {
        if part.is_empty() {
            sink.error(comma.unwrap_or_else(Span::call_site), "there is nothing before this comma: remove it");
        }
        while !part.is_empty() {
            let Some((key, value, rest)) = next_entry(level, part, sink) else { break };
            part = rest;
            let at = key.span();
            match level.lookup(&key, &value, sink) {
                Lookup::Known(key) => take(&Entry { key, at, value }, sink),
                // The key is a guess. What is wrong inside its list is a mistake of its own; for a single value one message is enough.
                Lookup::Near(key) if matches!(value, Value::Listed(_)) => take(&Entry { key, at, value }, sink),
                Lookup::Near(key) => take(&Entry { key, at, value }, &mut Sink::default()),
                Lookup::Misplaced => misplaced.push(key.to_string()),
                Lookup::Unknown => {}
            }
        }
    }
    misplaced
}

fn semicolons_to_commas(tokens: Vec<TokenTree>, sink: &mut Sink) -> Vec<TokenTree> {
    let mut to_comma = |token: TokenTree| {
        if !is_punct(&token, ';') {
            return token;
        }
        sink.error(token.span(), "entries are separated by commas: write `,` and not `;`");
        let mut comma = Punct::new(',', Spacing::Alone);
        comma.set_span(token.span());
        TokenTree::Punct(comma)
    };
    tokens.into_iter().map(&mut to_comma).collect()
}

/// Splits at commas outside of `::<...>`; an empty last part is not there. With each part comes the comma behind it.
pub(crate) fn split_at_commas(tokens: Vec<TokenTree>) -> Vec<(Vec<TokenTree>, Option<Span>)> {
    let mut parts = Vec::new();
    let mut part: Vec<TokenTree> = Vec::new();
    let mut generics = 0_usize;
    for token in tokens {
        if generics == 0 && is_punct(&token, ',') {
            parts.push((std::mem::take(&mut part), Some(token.span())));
            continue;
        }
        if is_punct(&token, '<') && (generics > 0 || part.last().is_some_and(|last| is_punct(last, ':'))) {
            generics += 1;
        } else if is_punct(&token, '>') {
            generics = generics.saturating_sub(1);
        }
        part.push(token);
    }
    if !part.is_empty() {
        parts.push((part, None));
    }
    parts
}

/// Takes the first entry off `tokens`, which are not empty. What is left stands behind a forgotten comma. `None`: not an entry.
fn next_entry(level: &Level, mut tokens: Vec<TokenTree>, sink: &mut Sink) -> Option<(Ident, Value, Vec<TokenTree>)> {
    if let Some(repaired) = nearly_a_key(level, &tokens, sink) {
        tokens = repaired;
    }
    let first = tokens.remove(0);
    let TokenTree::Ident(key) = first else {
        tokens.insert(0, first);
        return lone_value(level, tokens, sink);
    };
    let Some(second) = tokens.first().cloned() else {
        return Some((key, Value::Nothing, tokens));
    };
    match second {
        TokenTree::Group(group) => {
            tokens.remove(0);
            if group.delimiter() != Delimiter::Parenthesis {
                sink.error(group.span(), format!("a list stands in round brackets: write `{key}(...)`"));
            }
            missing_comma(&tokens, sink)?;
            Some((key, Value::Listed(group), tokens))
        }
        _ => {
            let tokens = equals_sign(level, &key, tokens, sink)?;
            if tokens.is_empty() {
                return Some((key, Value::Nothing, tokens));
            }
            let end = (1..tokens.len()).find(|&i| starts_entry(&tokens, i)).unwrap_or(tokens.len());
            let (value, rest) = tokens.split_at(end);
            missing_comma(rest, sink)?;
            Some((key, Value::Assigned(value.to_vec()), rest.to_vec()))
        }
    }
}

/// The entry with its key repaired, which is written in quotes, as a path, or with dashes.
fn nearly_a_key(level: &Level, tokens: &[TokenTree], sink: &mut Sink) -> Option<Vec<TokenTree>> {
    let sign = tokens.iter().position(|token| is_punct(token, '='))?;
    let (written, rest) = tokens.split_at(sign);
    let last = written.last()?;
    let joined = |pair: &[TokenTree]| pair.iter().any(|token| is_punct(token, '-') || is_punct(token, ':'));
    if !written.windows(2).all(joined) {
        return None;
    }
    let text = compact(written);
    let meant = [text.trim_matches('"').replace('-', "_"), last.to_string()];
    let key = meant.iter().find(|meant| level.has(meant)).filter(|key| **key != text)?;
    let line = compact(&rest[1..]);
    sink.error(Place::of(written, last.span()), format!("`{text}` is not a key: write `{key} = {line}`"));
    Some(std::iter::once(TokenTree::Ident(Ident::new(key, last.span()))).chain(rest.iter().cloned()).collect())
}

/// Takes the `=` off `tokens`, which stand behind `key`. Reports what else stands in its place.
fn equals_sign(level: &Level, key: &Ident, mut tokens: Vec<TokenTree>, sink: &mut Sink) -> Option<Vec<TokenTree>> {
    let place = Place::of(&tokens, key.span());
    let next_is = |i: usize, char: char| tokens.get(i).is_some_and(|token| is_punct(token, char));
    let sign = match () {
        () if next_is(0, ':') && next_is(1, ':') => 0,
        () if next_is(0, ':') => 1 + usize::from(next_is(1, '=')),
        () if next_is(0, '=') => 1 + usize::from(next_is(1, '=') || next_is(1, '>')),
        () => 0,
    };
    let written = compact(&tokens[..sign]);
    let behind = tokens.split_off(sign);
    match written.as_str() {
        "=" => {}
        _ if behind.is_empty() => {}
        ":" | "==" | "=>" | ":=" => {
            sink.error(Place::of(&tokens, key.span()), format!("write `=` and not `{written}`: `{key} = {}`", compact(&behind)));
        }
        "" if matches!(behind.first(), Some(TokenTree::Literal(_) | TokenTree::Ident(_))) => {
            sink.error(place, format!("`=` is missing: write `{key} = {}`", compact(&behind)));
        }
        _ => {
            no_key(level, &[&[TokenTree::Ident(key.clone())], tokens.as_slice(), behind.as_slice()].concat(), sink);
            return None;
        }
    }
    Some(behind)
}

/// Whether a new entry starts at `i`: there the comma was forgotten.
fn starts_entry(tokens: &[TokenTree], i: usize) -> bool {
    let value_ends = !matches!(tokens.get(i - 1), None | Some(TokenTree::Punct(_)));
    let goes_on = match tokens.get(i + 1) {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        Some(token) => is_punct(token, '='),
        None => false,
    };
    value_ends && goes_on && matches!(tokens.get(i), Some(TokenTree::Ident(_)))
}

/// Reports what stands behind an entry without a comma. `None` when it is no entry.
fn missing_comma(rest: &[TokenTree], sink: &mut Sink) -> Option<()> {
    match rest.first() {
        None => Some(()),
        Some(TokenTree::Ident(key)) => {
            sink.error(key.span(), format!("a comma is missing before `{key}`"));
            Some(())
        }
        Some(token) => {
            let place = Place::of(rest, token.span());
            sink.error(place, format!("`{}` is not expected here: remove it, or write a comma and the next key", compact(rest)));
            None
        }
    }
}

/// A value without a key is taken for that of the first key, and reported.
fn lone_value(level: &Level, tokens: Vec<TokenTree>, sink: &mut Sink) -> Option<(Ident, Value, Vec<TokenTree>)> {
    let [TokenTree::Literal(literal)] = tokens.as_slice() else {
        no_key(level, &tokens, sink);
        return None;
    };
    let first = level.keys[0].name;
    sink.error(literal.span(), format!("a value needs its key: write `{first} = {literal}`"));
    Some((Ident::new(first, literal.span()), Value::Assigned(tokens), Vec::new()))
}

/// Reports tokens that are not an entry.
fn no_key(level: &Level, tokens: &[TokenTree], sink: &mut Sink) {
    let (text, sample) = (compact(tokens), level.keys[0].sample);
    let message = format!("`{text}` is not a key of {}: an entry is written `{sample}`", level.name);
    sink.error(Place::of(tokens, Span::call_site()), message);
}

//! What stands behind a key: texts, numbers, durations, words of a closed set, paths.
//!
//! Each reader reports what it cannot read, with the line to write instead.

use std::fmt::Display;
use std::time::Duration;

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::Lit;

use super::duration;
use super::entries::{Entry, Value, compact, is_punct, split_at_commas, visible};
use crate::diag::{Place, Sink, alternatives, nearest};

/// How long a duration may be.
pub(crate) struct Bounds {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
    /// Why not longer, for a message.
    pub(crate) why: &'static str,
}

/// A part of a value, with the line to write when it is wrong.
pub(super) struct Operand<'a> {
    pub(super) tokens: &'a [TokenTree],
    pub(super) at: Place,
    /// What messages call it: the key, or a part of its value.
    pub(super) name: &'a str,
    /// Makes a line out of a value.
    pub(super) line: &'a dyn Fn(&dyn Display) -> String,
    pub(super) sample: &'a str,
}

impl Operand<'_> {
    pub(super) fn literal(&self) -> Option<Lit> {
        match self.tokens {
            [TokenTree::Literal(literal)] => Some(Lit::new(literal.clone())),
            _ => None,
        }
    }

    /// Whether the value could only be known later than the macro runs: a constant, a call, a macro.
    fn is_expression(&self) -> bool {
        let shouted =
            |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
        let is_a_list = matches!(self.tokens, [TokenTree::Group(_)]);
        self.tokens.iter().any(|token| match token {
            TokenTree::Group(_) => !is_a_list,
            TokenTree::Ident(word) => shouted(&word.to_string()),
            TokenTree::Punct(punct) => matches!(punct.as_char(), '!' | '&' | '+' | '*'),
            TokenTree::Literal(_) => false,
        }) || self.tokens.windows(2).any(|pair| is_punct(&pair[0], ':') && is_punct(&pair[1], ':'))
    }

    /// Reports that something else is expected, with the line to write.
    pub(super) fn wrong(&self, what: &str, line: &str, sink: &mut Sink) {
        let (name, sample) = (self.name, self.sample);
        if self.is_expression() {
            let why = "is read by the macro, when constants and calls have no value yet";
            sink.error(self.at, format!("{name} {why}: write the value itself, as in `{sample}`"));
        } else {
            sink.error(self.at, format!("{name} takes {what}: write `{line}`"));
        }
    }

    fn text(&self, what: &str, sink: &mut Sink) -> Option<String> {
        match self.literal() {
            Some(Lit::Str(text)) => return Some(text.value()),
            Some(Lit::Char(char)) => self.wrong(what, &(self.line)(&format_args!("\"{}\"", char.value())), sink),
            Some(Lit::ByteStr(_) | Lit::CStr(_) | Lit::Byte(_)) => self.wrong(what, self.sample, sink),
            _ => match self.tokens {
                [TokenTree::Group(_)] => self.wrong(what, self.sample, sink),
                [TokenTree::Ident(word)] if word == "true" || word == "false" => self.wrong(what, self.sample, sink),
                tokens => self.wrong(what, &(self.line)(&format_args!("\"{}\"", compact(tokens))), sink),
            },
        }
        None
    }

    fn duration(&self, bounds: &Bounds, sink: &mut Sink) -> Option<Duration> {
        let Some(Lit::Str(text)) = self.literal() else {
            let meant = self.meant_duration();
            let line = meant.map_or_else(|| self.sample.to_owned(), |meant| (self.line)(&format_args!("\"{meant}\"")));
            self.wrong("a text with a number and its unit", &line, sink);
            return None;
        };
        let text = text.value();
        match duration::parse(&text) {
            Ok(duration) if duration < bounds.least => {
                let least = duration::print(bounds.least);
                sink.error(self.at, format!("{} is at least \"{least}\", not \"{text}\"", self.name));
            }
            Ok(duration) if duration > bounds.most => {
                let most = duration::print(bounds.most);
                sink.error(self.at, format!("{} is at most \"{most}\"{}, not \"{text}\"", self.name, bounds.why));
            }
            Ok(duration) => return Some(duration),
            Err(problem) => sink.error(self.at, format!("\"{text}\" {problem}")),
        }
        None
    }

    /// What a duration that is not a text was meant to be.
    fn meant_duration(&self) -> Option<String> {
        match self.literal() {
            Some(Lit::Int(number)) if number.suffix().is_empty() => {
                // Whole thousands are most likely milliseconds.
                let digits = number.base10_digits();
                Some(format!("{digits}{}", if digits.ends_with("000") { "ms" } else { "s" }))
            }
            Some(Lit::Float(number)) if number.suffix().is_empty() => {
                duration::suggestion(&format!("{}s", number.base10_digits()))
            }
            _ => duration::suggestion(&compact(self.tokens).replace(' ', "")),
        }
    }
}

/// Runs `read` on what stands behind the `=` of the entry.
pub(super) fn operand<T>(entry: &Entry, sink: &mut Sink, read: impl FnOnce(&Operand<'_>, &mut Sink) -> Option<T>) -> Option<T> {
    let (name, sample) = (entry.key.name, entry.key.sample);
    let line = |value: &dyn Display| format!("{name} = {value}");
    match &entry.value {
        Value::Assigned(tokens) => {
            let name = &format!("`{name}`");
            read(&Operand { tokens, at: entry.value_at(), name, line: &line, sample }, sink)
        }
        Value::Nothing => {
            sink.error(entry.at, format!("`{name}` needs a value: write `{sample}`"));
            None
        }
        Value::Listed(group) => {
            let tokens = visible(group.stream());
            let value = compact(&tokens);
            let quoted = sample.ends_with('"') && !value.contains('"');
            let line = match value.as_str() {
                "" => sample.to_owned(),
                _ if quoted => line(&format_args!("\"{value}\"")),
                _ => line(&value),
            };
            sink.error(entry.value_at(), format!("`{name}` takes one value: write `{line}`"));
            None
        }
    }
}

/// A text in quotes.
pub(crate) fn text(entry: &Entry, sink: &mut Sink) -> Option<String> {
    operand(entry, sink, |operand, sink| operand.text("a text in quotes", sink))
}

/// A duration as text.
pub(crate) fn duration(entry: &Entry, bounds: &Bounds, sink: &mut Sink) -> Option<Duration> {
    operand(entry, sink, |operand, sink| operand.duration(bounds, sink))
}

/// `["1s", "10s"]`: durations in square brackets.
pub(crate) fn durations(entry: &Entry, bounds: &Bounds, sink: &mut Sink) -> Option<Vec<Duration>> {
    let list = match &entry.value {
        Value::Assigned(tokens) => match tokens.as_slice() {
            [TokenTree::Group(list)] => Some(list),
            _ => None,
        },
        Value::Listed(list) => Some(list),
        Value::Nothing => None,
    };
    match list {
        Some(list) if list.delimiter() == Delimiter::Bracket => items(list, bounds, sink),
        Some(list) if !list.stream().is_empty() => {
            let (name, items) = (entry.key.name, compact(&visible(list.stream())));
            sink.error(entry.value_at(), format!("`{name}` takes a list in square brackets: write `{name} = [{items}]`"));
            None
        }
        _ => operand(entry, sink, |operand, sink| {
            let text = compact(operand.tokens);
            let items: Vec<String> = text.trim_matches('"').split(',').map(|item| format!("\"{}\"", item.trim())).collect();
            operand.wrong("a list in square brackets", &(operand.line)(&format_args!("[{}]", items.join(", "))), sink);
            None
        }),
    }
}

/// The durations in a list; each that is none is reported.
fn items(list: &Group, bounds: &Bounds, sink: &mut Sink) -> Option<Vec<Duration>> {
    let parts = split_at_commas(visible(list.stream()));
    let line = |value: &dyn Display| value.to_string();
    let read = |(tokens, _): &(Vec<TokenTree>, Option<Span>)| {
        let at = Place::of(tokens, list.span());
        Operand { tokens, at, name: "a delay", line: &line, sample: "\"5s\"" }.duration(bounds, sink)
    };
    let durations: Vec<Option<Duration>> = parts.iter().map(read).collect();
    durations.into_iter().collect()
}

/// One word of a closed set, as text. `what` names the kind of thing: "store".
pub(crate) fn word(entry: &Entry, what: &str, words: &[&'static str], sink: &mut Sink) -> Option<&'static str> {
    word_or(entry, what, words, &[], sink)
}

/// The same, where some of the words also have other names.
pub(crate) fn word_or(
    entry: &Entry,
    what: &str,
    words: &[&'static str],
    others: &[(&str, &'static str)],
    sink: &mut Sink,
) -> Option<&'static str> {
    let meant = |text: &str| {
        let other = others.iter().find(|(other, _)| *other == text).map(|(_, word)| *word);
        other.or_else(|| nearest(text, words.iter().copied()))
    };
    let expected = || alternatives(words.iter().copied(), "\"");
    operand(entry, sink, |operand, sink| {
        if let Some(Lit::Str(text)) = operand.literal() {
            let text = text.value();
            let known = words.iter().copied().find(|word| *word == text);
            if known.is_none() {
                let question = meant(&text).map_or_else(String::new, |near| format!(": did you mean \"{near}\"?"));
                sink.error(operand.at, format!("there is no {what} \"{text}\"{question}\nexpected {}", expected()));
            }
            return known;
        }
        let written = compact(operand.tokens);
        let line = match meant(&written) {
            Some(near) => (operand.line)(&format_args!("\"{near}\"")),
            None => operand.sample.to_owned(),
        };
        operand.wrong(&expected(), &line, sink);
        None
    })
}

/// The path of a function, of a consumer, or of this crate.
pub(crate) fn path(entry: &Entry, what: &str, sink: &mut Sink) -> Option<syn::Path> {
    operand(entry, sink, |operand, sink| read_path(operand, what, sink))
}

pub(super) fn read_path(operand: &Operand<'_>, what: &str, sink: &mut Sink) -> Option<syn::Path> {
    let tokens: TokenStream = operand.tokens.iter().cloned().collect();
    if let Ok(path) = syn::parse2(tokens) {
        return Some(path);
    }
    let name = operand.name;
    let quoted = match operand.literal() {
        Some(Lit::Str(text)) => text.parse::<syn::Path>().ok().map(|_| text.value()),
        _ => None,
    };
    match (quoted, operand.tokens) {
        (Some(path), _) => {
            sink.error(operand.at, format!("{name} takes {what}, without quotes: write `{}`", (operand.line)(&path)))
        }
        (None, [path @ .., TokenTree::Group(group)]) if !path.is_empty() && group.delimiter() == Delimiter::Parenthesis => {
            let line = (operand.line)(&compact(path));
            sink.error(operand.at, format!("{name} takes {what} and does not call it here: write `{line}`"));
        }
        _ => {
            sink.error(operand.at, format!("{name} takes {what}, not `{}`: write `{}`", compact(operand.tokens), operand.sample))
        }
    }
    None
}

/// The tokens between the parentheses of the entry.
pub(crate) fn list(entry: &Entry, sink: &mut Sink) -> Option<TokenStream> {
    let (name, sample) = (entry.key.name, entry.key.sample);
    match &entry.value {
        Value::Listed(group) => return Some(group.stream()),
        Value::Nothing => sink.error(entry.at, format!("`{name}` needs its settings: write `{sample}`")),
        Value::Assigned(_) => {
            sink.error(entry.value_at(), format!("`{name}` takes its settings in parentheses: write `{sample}`"))
        }
    }
    None
}

/// A key that stands by itself.
pub(crate) fn flag(entry: &Entry, sink: &mut Sink) -> Option<()> {
    if !matches!(entry.value, Value::Nothing) {
        let name = entry.key.name;
        sink.error(entry.value_at(), format!("`{name}` has no value: write `{name}`"));
    }
    // What was meant is clear, and nothing else need be said of it.
    Some(())
}

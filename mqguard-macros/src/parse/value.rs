//! What stands behind a key: texts, numbers, durations, words of a closed set, paths.
//!
//! Each reader reports what it cannot read, with the line to write instead.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
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
struct Operand<'a> {
    tokens: &'a [TokenTree],
    at: Place,
    /// What messages call it: the key, or a part of its value.
    name: &'a str,
    /// Makes a line out of a value.
    line: &'a dyn Fn(&dyn Display) -> String,
    sample: &'a str,
}

impl Operand<'_> {
    fn literal(&self) -> Option<Lit> {
        match self.tokens {
            [TokenTree::Literal(literal)] => Some(Lit::new(literal.clone())),
            _ => None,
        }
    }

    /// Whether the value could only be known later than the macro runs: a constant, a call, a macro.
    fn is_expression(&self) -> bool {
        let shouted =
            |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
        self.tokens.iter().any(|token| match token {
            TokenTree::Group(_) => true,
            TokenTree::Ident(word) => shouted(&word.to_string()),
            TokenTree::Punct(punct) => matches!(punct.as_char(), '!' | '&' | '+' | '*'),
            TokenTree::Literal(_) => false,
        }) || self.tokens.windows(2).any(|pair| is_punct(&pair[0], ':') && is_punct(&pair[1], ':'))
    }

    /// Reports that something else is expected, with the line to write.
    fn wrong(&self, what: &str, line: &str, sink: &mut Sink) {
        let (name, sample) = (self.name, self.sample);
        if self.is_expression() {
            let why = "is read at compile time, it cannot be a constant or a call";
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
            _ => self.wrong(what, &(self.line)(&format_args!("\"{}\"", compact(self.tokens))), sink),
        }
        None
    }

    fn duration(&self, bounds: &Bounds, sink: &mut Sink) -> Option<Duration> {
        const WHAT: &str = "a text with a number and its unit";
        let text = match self.literal() {
            Some(Lit::Str(text)) => text.value(),
            Some(Lit::Int(number)) if number.suffix().is_empty() => {
                // Whole thousands are most likely milliseconds.
                let unit = if number.base10_digits().ends_with("000") { "ms" } else { "s" };
                self.wrong(WHAT, &(self.line)(&format_args!("\"{}{unit}\"", number.base10_digits())), sink);
                return None;
            }
            Some(Lit::Float(number)) if number.suffix().is_empty() => {
                let seconds = duration::suggestion(&format!("{}s", number.base10_digits())).unwrap_or_default();
                self.wrong(WHAT, &(self.line)(&format_args!("\"{seconds}\"")), sink);
                return None;
            }
            _ => {
                let written = compact(self.tokens).replace(' ', "");
                let good = duration::suggestion(&written);
                self.wrong(
                    WHAT,
                    &good.map_or_else(|| self.sample.to_owned(), |good| (self.line)(&format_args!("\"{good}\""))),
                    sink,
                );
                return None;
            }
        };
        match duration::parse(&text) {
            Ok(duration) if (bounds.least..=bounds.most).contains(&duration) => return Some(duration),
            Ok(duration) => {
                let bound = if duration < bounds.least {
                    format!("at least \"{}\"", duration::print(bounds.least))
                } else {
                    format!("at most \"{}\"{}", duration::print(bounds.most), bounds.why)
                };
                sink.error(self.at, format!("{} is {bound}, not \"{text}\"", self.name));
            }
            Err(problem) => sink.error(self.at, format!("\"{text}\" {problem}")),
        }
        None
    }
}

/// Runs `read` on what stands behind the `=` of the entry.
fn operand<T>(entry: &Entry, sink: &mut Sink, read: impl FnOnce(&Operand<'_>, &mut Sink) -> Option<T>) -> Option<T> {
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
            let line = if tokens.is_empty() { sample.to_owned() } else { line(&compact(&tokens)) };
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

/// `["1s", "10s"]`: durations in brackets.
pub(crate) fn durations(entry: &Entry, bounds: &Bounds, sink: &mut Sink) -> Option<Vec<Duration>> {
    if let Value::Listed(group) = &entry.value {
        let list = compact(&visible(group.stream()));
        let list = if list.is_empty() { "\"1s\", \"10s\", \"1m\"".to_owned() } else { list };
        sink.error(entry.value_at(), format!("`{0}` takes a list in square brackets: write `{0} = [{list}]`", entry.key.name));
        return None;
    }
    operand(entry, sink, |whole, sink| {
        let [TokenTree::Group(group)] = whole.tokens else {
            let texts = compact(whole.tokens);
            let texts: Vec<String> = texts.trim_matches('"').split(',').map(|text| format!("\"{}\"", text.trim())).collect();
            whole.wrong("a list in square brackets", &(whole.line)(&format_args!("[{}]", texts.join(", "))), sink);
            return None;
        };
        if group.delimiter() != Delimiter::Bracket {
            let list = compact(&visible(group.stream()));
            sink.error(
                whole.at,
                format!("{} takes a list in square brackets: write `{}`", whole.name, (whole.line)(&format_args!("[{list}]"))),
            );
            return None;
        }
        let mut durations = Vec::new();
        let parts = split_at_commas(visible(group.stream()));
        let count = parts.len();
        for (tokens, _) in parts {
            let at = Place::of(&tokens, group.span());
            let line = |value: &dyn Display| value.to_string();
            let item = Operand { tokens: &tokens, at, name: "a delay", line: &line, sample: "\"5s\"" };
            durations.extend(item.duration(bounds, sink));
        }
        (durations.len() == count).then_some(durations)
    })
}

/// A whole number. `below` is added to the message when it is too small.
pub(crate) fn whole(entry: &Entry, range: &RangeInclusive<u32>, below: &str, sink: &mut Sink) -> Option<u32> {
    let what = format!("a whole number from {} to {}", range.start(), range.end());
    operand(entry, sink, |operand, sink| {
        let written = compact(operand.tokens);
        let digits = written.trim_matches(['"', ' ']).replace('_', "");
        match operand.literal() {
            Some(Lit::Int(number)) if number.suffix().is_empty() => match number.base10_parse::<u32>() {
                Ok(number) if range.contains(&number) => return Some(number),
                Ok(number) if number < *range.start() => {
                    sink.error(operand.at, format!("{} takes {what}, not {written}{below}", operand.name));
                }
                _ => sink.error(operand.at, format!("{} takes {what}, not {written}", operand.name)),
            },
            Some(Lit::Int(number)) if in_range(number.base10_digits(), range) => {
                operand.wrong(&what, &(operand.line)(&number.base10_digits()), sink);
            }
            Some(Lit::Str(_)) if in_range(&digits, range) => operand.wrong(&what, &(operand.line)(&digits), sink),
            _ if written.starts_with('-') => {
                sink.error(operand.at, format!("{} takes {what}, not {written}{below}", operand.name))
            }
            Some(Lit::Float(_)) => sink.error(operand.at, format!("{} takes {what}, not {written}", operand.name)),
            _ => operand.wrong(&what, operand.sample, sink),
        }
        None
    })
}

fn in_range(digits: &str, range: &RangeInclusive<u32>) -> bool {
    digits.parse().is_ok_and(|number| range.contains(&number))
}

/// A number with or without a fraction. `hint` is added to the message when it is out of range.
pub(crate) fn number(entry: &Entry, range: &RangeInclusive<f64>, hint: &str, sink: &mut Sink) -> Option<f64> {
    let what = format!("a number from {} to {}", range.start(), range.end());
    operand(entry, sink, |operand, sink| {
        let written = compact(operand.tokens);
        let digits = written.trim_matches(['"', ' ']).replace('_', "");
        let percent = digits.strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok()).map(|number| number / 100.0);
        match operand.literal() {
            Some(Lit::Int(number)) if number.suffix().is_empty() => {
                let number = number.base10_digits().parse::<f64>();
                if let Some(number) = number.ok().filter(|number| range.contains(number)) {
                    return Some(number);
                }
                sink.error(operand.at, format!("{} takes {what}, not {written}{hint}", operand.name));
            }
            Some(Lit::Float(number)) if number.suffix().is_empty() => {
                let number = number.base10_digits().parse::<f64>();
                if let Some(number) = number.ok().filter(|number| range.contains(number)) {
                    return Some(number);
                }
                sink.error(operand.at, format!("{} takes {what}, not {written}{hint}", operand.name));
            }
            _ if operand.is_expression() => operand.wrong(&what, operand.sample, sink),
            _ => match percent.or_else(|| digits.parse().ok()).filter(|number| range.contains(number)) {
                Some(number) => operand.wrong(&what, &(operand.line)(&number), sink),
                None if written.starts_with(|first: char| first.is_alphabetic() || first == '"') => {
                    operand.wrong(&what, operand.sample, sink)
                }
                None => sink.error(operand.at, format!("{} takes {what}, not {written}{hint}", operand.name)),
            },
        }
        None
    })
}

/// One word of a closed set, as text. `what` names the kind of thing: "store".
pub(crate) fn word(entry: &Entry, what: &str, words: &[&'static str], sink: &mut Sink) -> Option<&'static str> {
    let expected = || alternatives(words.iter().copied(), "\"");
    operand(entry, sink, |operand, sink| {
        if let Some(Lit::Str(text)) = operand.literal() {
            let text = text.value();
            let known = words.iter().copied().find(|word| *word == text);
            if known.is_none() {
                let question =
                    nearest(&text, words.iter().copied()).map_or_else(String::new, |near| format!(": did you mean \"{near}\"?"));
                sink.error(operand.at, format!("there is no {what} \"{text}\"{question}\nexpected {}", expected()));
            }
            return known;
        }
        let written = compact(operand.tokens);
        let line = match nearest(&written, words.iter().copied()) {
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

fn read_path(operand: &Operand<'_>, what: &str, sink: &mut Sink) -> Option<syn::Path> {
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
        _ => sink
            .error(operand.at, format!("`{name}` takes {what}, not `{}`: write `{}`", compact(operand.tokens), operand.sample)),
    }
    None
}

/// Where the business key of a message comes from.
#[derive(Debug, Clone)]
pub(crate) enum KeySource {
    /// A field of the payload: `order_id`, `customer.id`.
    Field(Vec<syn::Member>),
    /// A function of the payload.
    Function(syn::Path),
}

/// A field as text, or the path of a function.
pub(crate) fn key_source(entry: &Entry, sink: &mut Sink) -> Option<KeySource> {
    operand(entry, sink, |operand, sink| {
        let Some(Lit::Str(text)) = operand.literal() else {
            let what = "a field in quotes or the name of a function";
            return read_path(operand, what, sink).map(KeySource::Function);
        };
        let members: Option<Vec<_>> =
            text.value().split('.').map(|part| member(part, Span::mixed_site().located_at(text.span()))).collect();
        if members.is_none() {
            let message = format!(
                "\"{}\" is not a field of the message: write `{}`, or `key = \"customer.id\"` for one inside",
                text.value(),
                operand.sample
            );
            sink.error(operand.at, message);
        }
        members.map(KeySource::Field)
    })
}

/// A field's name or its number, to be blamed on `span`.
pub(crate) fn member(text: &str, span: Span) -> Option<syn::Member> {
    if let Ok(index) = text.parse::<u32>() {
        return Some(syn::Member::Unnamed(syn::Index { index, span }));
    }
    let ident = syn::parse_str::<syn::Ident>(text).or_else(|_| syn::parse_str(&format!("r#{text}"))).ok();
    ident.map(|mut ident| {
        ident.set_span(span);
        syn::Member::Named(ident)
    })
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

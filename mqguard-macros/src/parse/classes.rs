//! `#[retryable(...)]` and `#[fatal]`.

use std::time::Duration;

use proc_macro2::{Span, TokenTree};
use syn::{Attribute, Lit, Member, Meta, Path};

use super::consumer::DELAYS;
use super::entries::{Entry, Value, each_entry};
use super::slot::Slot;
use super::value;
use super::{duration, field as fields, keys, text_of};
use crate::diag::{Place, Sink};

/// What the attributes on an item, variant or field say.
#[derive(Default)]
pub(crate) struct Classes {
    /// Those that classify, in order.
    pub(crate) given: Vec<Given>,
    /// Whether one of them could not be read.
    pub(crate) faulty: bool,
    /// `crate = path`
    pub(crate) root: Option<Path>,
}

/// One attribute.
pub(crate) struct Given {
    pub(crate) at: Place,
    /// As the user wrote it.
    pub(crate) text: String,
    pub(crate) class: Written,
}

/// A class as it is written.
pub(crate) enum Written {
    Retryable,
    Fatal,
    After {
        delay: After,
        at: Place,
        uncounted: bool,
    },
    /// With the field, where one is named.
    Inherit {
        field: Option<Member>,
        at: Place,
    },
}

pub(crate) enum After {
    Fixed(Duration),
    Field(Member, Span),
}

/// Reads the attributes that classify.
pub(crate) fn classes(attrs: &[Attribute], sink: &mut Sink) -> Classes {
    let mut classes = Classes::default();
    for attr in attrs {
        let mut own = Sink::default();
        let given = if attr.path().is_ident("fatal") {
            fatal(attr, &mut own);
            Some(Written::Fatal)
        } else if attr.path().is_ident("retryable") {
            retryable(attr, &mut classes.root, &mut own)
        } else {
            continue;
        };
        classes.faulty |= !own.is_empty();
        sink.absorb(own);
        let (at, text) = (Place::of_syntax(&attr.meta), format!("#[{}]", text_of(&attr.meta)));
        classes.given.extend(given.map(|class| Given { at, text, class }));
    }
    classes
}

fn fatal(attr: &Attribute, sink: &mut Sink) {
    if !matches!(attr.meta, Meta::Path(_)) {
        sink.error(Place::of_syntax(&attr.meta), "`#[fatal]` has no settings: write `#[fatal]`");
    }
}

#[derive(Default)]
struct Args {
    after: Slot<After>,
    uncounted: Slot<()>,
    inherit: Slot<Option<Member>>,
    root: Slot<Path>,
}

/// Reads `#[retryable]`. `None` when it only names the crate.
fn retryable(attr: &Attribute, root: &mut Option<Path>, sink: &mut Sink) -> Option<Written> {
    let tokens = match &attr.meta {
        Meta::Path(_) => return Some(Written::Retryable),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => {
            let value = text_of(&pair.value);
            sink.error(Place::of_syntax(&attr.meta), format!("write `#[retryable(after = {value})]`, or `#[retryable]`"));
            return Some(Written::Retryable);
        }
    };
    let mut args = Args::default();
    each_entry(&keys::RETRYABLE, tokens, sink, |entry, sink| match entry.key.name {
        "after" => args.after.read(entry, sink, after),
        "uncounted" => args.uncounted.read(entry, sink, value::flag),
        "inherit" => args.inherit.read(entry, sink, inherit),
        _ => args.root.read(entry, sink, |entry, sink| value::path(entry, "the path of mqguard", sink)),
    });
    if let Some(path) = args.root.value() {
        *root = Some(path.clone());
        if !(args.after.is_given() || args.uncounted.is_given() || args.inherit.is_given()) {
            return None;
        }
    }
    Some(written(args, sink))
}

fn written(mut args: Args, sink: &mut Sink) -> Written {
    let uncounted = args.uncounted.get().map(|given| given.key);
    let (after, inherit) = (args.after.take(), args.inherit.take());
    if let (Some(after), Some(inherit)) = (&after, &inherit) {
        let text = &after.text;
        sink.error(inherit.key, format!("`inherit` takes the delay from the wrapped error: remove it, or remove `{text}`"));
    }
    if let (Some(uncounted), false) = (uncounted, args.after.is_given()) {
        let message = "only a retry at a time of its own can be uncounted: write `after = \"30s\", uncounted`, or name a field";
        sink.error(uncounted, message);
    }
    match (after, inherit) {
        (Some(after), _) => Written::After { delay: after.value, at: after.at, uncounted: uncounted.is_some() },
        (None, Some(inherit)) => Written::Inherit { at: Place::from(inherit.key).to(inherit.at), field: inherit.value },
        (None, None) => Written::Retryable,
    }
}

/// A field, or a duration as text.
fn after(entry: &Entry, sink: &mut Sink) -> Option<After> {
    match &entry.value {
        Value::Assigned(tokens) => match field(tokens) {
            Some((member, at)) => Some(After::Field(member, at)),
            None => match tokens.as_slice() {
                [TokenTree::Literal(literal)] if names_a_field(literal) => {
                    let name = literal.to_string();
                    let name = name.trim_matches('"');
                    sink.error(entry.value_at(), format!("a field is named without quotes: write `after = {name}`"));
                    None
                }
                _ => value::duration(entry, &DELAYS, sink).map(After::Fixed),
            },
        },
        _ => value::duration(entry, &DELAYS, sink).map(After::Fixed),
    }
}

/// Whether a literal is a text that can only be meant as a field.
fn names_a_field(literal: &proc_macro2::Literal) -> bool {
    match Lit::new(literal.clone()) {
        Lit::Str(text) => duration::suggestion(&text.value()).is_none() && text.parse::<syn::Ident>().is_ok(),
        _ => false,
    }
}

fn inherit(entry: &Entry, sink: &mut Sink) -> Option<Option<Member>> {
    match &entry.value {
        Value::Nothing => return Some(None),
        Value::Assigned(tokens) => {
            if let Some((member, _)) = field(tokens) {
                return Some(Some(member));
            }
            sink.error(entry.value_at(), "`inherit` takes the name or number of a field: write `inherit = source`, or `inherit`");
        }
        Value::Listed(_) => sink.error(entry.value_at(), "`inherit` takes one field: write `inherit = source`, or `inherit`"),
    }
    None
}

/// A field's name or number; `self.` before it is allowed.
fn field(tokens: &[TokenTree]) -> Option<(Member, Span)> {
    let token = match tokens {
        [token] => token,
        [TokenTree::Ident(this), TokenTree::Punct(dot), token] if this == "self" && dot.as_char() == '.' => token,
        _ => return None,
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match token {
        TokenTree::Ident(name) => Some((Member::Named(name.clone()), name.span())),
        TokenTree::Literal(number) if is_number(&number.to_string()) => {
            let member = fields::member(&number.to_string(), number.span())?;
            Some((member, number.span()))
        }
        _ => None,
    }
}

//! From an annotated item to what the compiler gets: the item as it is, the mistakes, and the wiring.

pub(crate) mod companion;
mod completion;
mod consumer;
mod dead_letter_consumer;
pub(crate) mod retryable_error;
mod spec;
#[cfg(test)]
mod tests;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::DeriveInput;

use crate::diag::{Place, Sink};
use crate::model::{Consumer, Handler};
use crate::parse::consumer::Args;
use crate::parse::function::{Function, kind_of, name_of};
use crate::validate::{attribute, classes, signature, transaction};
use crate::{fallback, parse, root};

/// What differs between the two attributes.
struct Attribute {
    name: &'static str,
    read: fn(TokenStream, &mut Sink) -> Args,
    check: fn(&Args, &str, Option<Place>, &mut Sink) -> Option<Consumer>,
    expand: fn(&Consumer, &Handler, &Site) -> TokenStream,
}

/// What every companion is given.
pub(crate) struct Site {
    /// The path of mqguard.
    pub(crate) root: TokenStream,
    /// What completes the keys in an editor.
    pub(crate) completion: TokenStream,
}

/// Expands `#[consumer]`.
pub(crate) fn consumer(args: TokenStream, item: &TokenStream) -> TokenStream {
    let (read, check) = (parse::consumer::consumer, attribute::consumer);
    annotated(&Attribute { name: "consumer", read, check, expand: consumer::expand }, args, item)
}

/// Expands `#[dead_letter_consumer]`.
pub(crate) fn dead_letter_consumer(args: TokenStream, item: &TokenStream) -> TokenStream {
    let (read, check) = (parse::consumer::dead_letter_consumer, attribute::dead_letter_consumer);
    annotated(&Attribute { name: "dead_letter_consumer", read, check, expand: dead_letter_consumer::expand }, args, item)
}

/// The item as it is, then the companion of the function, then the mistakes: an editor completes a key at the first token that stands at
/// its place, which must not be one of the message about it.
fn annotated(attribute: &Attribute, args: TokenStream, item: &TokenStream) -> TokenStream {
    let mut sink = Sink::default();
    let place = (!args.is_empty()).then(|| Place::of_syntax(&args));
    let args = (attribute.read)(args, &mut sink);
    let root = root::find(args.root.value(), "crate = path::to::mqguard", &mut sink);
    let site = Site { completion: completion::of(sink.keys(), &root), root };
    let wiring = wiring(attribute, &args, place, item, &site, &mut sink);
    let mistakes = sink.into_tokens();
    quote!(#item #wiring #mistakes)
}

fn wiring(
    attribute: &Attribute,
    args: &Args,
    place: Option<Place>,
    item: &TokenStream,
    site: &Site,
    sink: &mut Sink,
) -> TokenStream {
    let Some(function) = function(attribute, item, sink) else {
        return name_of(item).map_or_else(TokenStream::new, |name| fallback::consumer(&name, None, site));
    };
    if let Some(other) = function.attrs.iter().find(|attr| names_a_consumer(attr)) {
        let text = parse::text_of(other.path());
        sink.error(
            Place::of_syntax(&other.meta),
            format!("a function is one consumer: remove `#[{text}(...)]`, or write a second function"),
        );
        // The other attribute makes the companion.
        return TokenStream::new();
    }
    let consumer = (attribute.check)(args, &companion::name(&function.sig.ident), place, sink);
    if let Some((at, message)) = signature::is_a_method(&function) {
        // In an `impl` there can be no companion.
        sink.error(at, message);
        return TokenStream::new();
    }
    let handler = signature::handler(&function, args.classify.get(), sink);
    match (consumer, handler) {
        (Some(consumer), Some(handler)) if transaction::agree(&consumer, &handler, sink) && sink.is_empty() => {
            (attribute.expand)(&consumer, &handler, site)
        }
        _ => fallback::consumer(&function.sig.ident, Some(&function), site),
    }
}

fn names_a_consumer(attr: &syn::Attribute) -> bool {
    attr.path().segments.last().is_some_and(|last| last.ident == "consumer" || last.ident == "dead_letter_consumer")
}

fn function(attribute: &Attribute, item: &TokenStream, sink: &mut Sink) -> Option<Function> {
    let name = attribute.name;
    if let Some(kind) = kind_of(item) {
        let first = item.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span());
        sink.error(first, format!("`#[{name}]` goes on an `async fn`, not on {kind}"));
        return None;
    }
    match syn::parse2(item.clone()) {
        Ok(function) => Some(function),
        Err(problem) => {
            // What could stand there is a long list, which the compiler has already told.
            let problem_text = problem.to_string();
            let short = problem_text.split(", expected one of").next().unwrap_or_default();
            sink.error(problem.span(), format!("`#[{name}]` cannot read this function: {short}"));
            None
        }
    }
}

/// Expands `#[derive(RetryableError)]`.
pub(crate) fn retryable_error(input: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(input) {
        Ok(input) => input,
        Err(problem) => return problem.into_compile_error(),
    };
    let mut sink = Sink::default();
    let checked = classes::error_type(&input, &mut sink);
    let root = root::find(checked.root.as_ref(), "#[retryable(crate = path::to::mqguard)]", &mut sink);
    let wiring = if sink.is_empty() && checked.complete {
        retryable_error::expand(&checked.error, &root)
    } else {
        fallback::retryable_error(&checked.error, &root)
    };
    let mistakes = sink.into_tokens();
    quote!(#mistakes #wiring)
}

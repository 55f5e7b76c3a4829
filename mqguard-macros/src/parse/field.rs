//! The field or function that the business key of a message comes from.

use proc_macro2::Span;
use syn::Lit;

use super::entries::Entry;
use super::value::{operand, read_path};
use crate::diag::Sink;

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
        // Located there, but not as if it were written there: the compiler would advise to write the field without quotes.
        let span = Span::mixed_site().located_at(text.span());
        let text = text.value();
        let members: Option<Vec<_>> = text.split('.').map(|part| member(part, span)).collect();
        if members.is_none() {
            let sample = operand.sample;
            let message =
                format!("\"{text}\" is not a field of the message: write `{sample}`, or `key = \"customer.id\"` for one inside");
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

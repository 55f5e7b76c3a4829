//! What users write in attributes.

use proc_macro2::TokenStream;

use crate::parse::duration;
use crate::{expand, parse};

/// A duration that is read is printed so that it is read as the same; what is suggested can be read.
pub fn duration(text: &str) {
    match duration::parse(text) {
        Ok(read) => assert_eq!(duration::parse(&duration::print(read)), Ok(read), "{text:?}"),
        Err(problem) => assert!(!problem.is_empty(), "{text:?}"),
    }
    if let Some(better) = duration::suggestion(text) {
        assert!(duration::parse(&better).is_ok(), "{text:?}: {better:?} is suggested, which cannot be read");
    }
}

/// Whatever an attribute says, the function comes out as it went in, and the rest is Rust.
pub fn attribute(text: &str) {
    let item = "async fn process(order: Order) -> Result<(), OrderError> { Ok(()) }";
    // Every parsed text is remembered for its positions.
    proc_macro2::extra::invalidate_current_thread_spans();
    let (Ok(arguments), Ok(item)) = (text.parse::<TokenStream>(), item.parse::<TokenStream>()) else { return };
    // The name of the crate is looked up in a file otherwise.
    let arguments = if text.contains("crate") { arguments } else { quote::quote!(crate = ::mqguard, #arguments) };
    for expand in [expand::consumer, expand::dead_letter_consumer] {
        let out = expand(arguments.clone(), &item);
        let file = syn::parse2::<syn::File>(out.clone()).unwrap_or_else(|error| panic!("{text:?}: {error}: {out}"));
        let first = file.items.first().map(quote::ToTokens::to_token_stream).unwrap_or_default();
        assert_eq!(parse::text_of(&first), parse::text_of(&item), "{text:?}");
    }
}

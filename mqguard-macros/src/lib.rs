//! The macros of mqguard.

mod diag;
mod expand;
mod fallback;
mod model;
mod parse;
mod root;
mod validate;

use proc_macro::TokenStream;

/// Makes an `async fn` a consumer.
#[proc_macro_attribute]
pub fn consumer(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::consumer(args.into(), &item.into()).into()
}

/// Makes an `async fn` a consumer of dead letters.
#[proc_macro_attribute]
pub fn dead_letter_consumer(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::dead_letter_consumer(args.into(), &item.into()).into()
}

/// Says which failures are worth a retry.
#[proc_macro_derive(RetryableError, attributes(retryable, fatal))]
pub fn retryable_error(input: TokenStream) -> TokenStream {
    expand::retryable_error(input.into()).into()
}

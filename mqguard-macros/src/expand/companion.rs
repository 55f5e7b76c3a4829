//! The type of a function's name that implements `Consumer`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Visibility};

/// The name as people say it: without `r#`.
pub(crate) fn name(name: &Ident) -> String {
    name.unraw().to_string()
}

/// The type, at the function's name. That nobody registers a consumer the compiler says of the function; it would say it again of the
/// type, were that not wholly the macro's.
pub(crate) fn declaration(name: &Ident, vis: &Visibility, attrs: &[Attribute]) -> TokenStream {
    let span = name.span();
    let doc = format!(" Registers the consumer `{}`.", self::name(name));
    let vis = at(vis.to_token_stream(), span);
    let own = Span::call_site().located_at(span);
    let (keyword, body) = (quote_spanned!(own=> enum), quote_spanned!(own=> {}));
    quote_spanned! {span=>
        #(#attrs)*
        #[doc = #doc]
        #[allow(non_camel_case_types, unreachable_pub, missing_debug_implementations, missing_copy_implementations)]
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
        #vis #keyword #name #body
    }
}

/// The same tokens at another place.
pub(super) fn at(tokens: TokenStream, span: Span) -> TokenStream {
    let moved = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            let mut moved = proc_macro2::Group::new(group.delimiter(), at(group.stream(), span));
            moved.set_span(span);
            token = TokenTree::Group(moved);
        } else {
            token.set_span(token.span().located_at(span));
        }
        token
    };
    tokens.into_iter().map(moved).collect()
}

/// What stands before the `impl`: when it exists, and no lints on what nobody wrote.
pub(crate) fn impl_attributes(name: &Ident, attrs: &[Attribute]) -> TokenStream {
    quote_spanned! {name.span()=>
        #(#attrs)*
        #[automatically_derived]
        #[allow(deprecated, unused_qualifications, unexpected_cfgs)]
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
    }
}

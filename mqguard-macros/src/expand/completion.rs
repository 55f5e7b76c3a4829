//! Keys as paths, which an editor completes and documents. The compiler never sees them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// What was written as keys, as paths to those that there are. To stand at the start of a block.
pub(crate) fn of(keys: &[(&'static str, Ident)], root: &TokenStream) -> TokenStream {
    // Keywords are no names, and nothing begins with one but `crate`.
    let is_name = |key: &Ident| syn::parse_str::<Ident>(&key.to_string()).is_ok();
    let paths = keys.iter().filter(|(_, key)| is_name(key)).map(|(level, key)| {
        let level = Ident::new(level, Span::call_site());
        quote!(#level::#key)
    });
    quote! {
        #[cfg(rust_analyzer)]
        {
            use #root::__private::keys::*;
            let _ = [#(#paths),*];
        }
    }
}

//! Where the expansion finds mqguard.

use proc_macro_crate::{Error, FoundCrate, crate_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Path;

use crate::diag::Sink;

/// The path of the crate: as the user names it, else as the package imports it. `naming` is how one names it.
pub(crate) fn find(named: Option<&Path>, naming: &str, sink: &mut Sink) -> TokenStream {
    if let Some(path) = named {
        return path.to_token_stream();
    }
    match crate_name("mqguard") {
        Ok(FoundCrate::Name(name)) => {
            let name = Ident::new(&name, Span::call_site());
            quote!(::#name)
        }
        Err(Error::CrateNotFound { .. }) => {
            let message = format!(
                "this package does not depend on `mqguard`: run `cargo add mqguard`, \
                 or name the crate that re-exports it, `{naming}`"
            );
            sink.error(Span::call_site(), message);
            quote!(::mqguard)
        }
        // Its own tests, examples and documentation see it as any other crate does; without a readable manifest that is the best guess.
        Ok(FoundCrate::Itself) | Err(_) => quote!(::mqguard),
    }
}

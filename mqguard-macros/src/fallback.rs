//! Stand-ins for what could not be made of a faulty item, so that the mistake is the only thing that is reported.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Visibility;

use crate::expand::{self, Site, companion};
use crate::model::ErrorType;
use crate::parse::function::Function;
use crate::validate::signature::companion_attributes;

/// The companion of a function that is no consumer: it can be registered, and does nothing.
pub(crate) fn consumer(name: &Ident, function: Option<&Function>, site: &Site) -> TokenStream {
    let Site { root, completion } = site;
    let private = quote!(#root::__private);
    let attrs = function.map(|function| companion_attributes(&function.attrs)).unwrap_or_default();
    let vis = function.map_or(Visibility::Inherited, |function| function.vis.clone());
    let declaration = companion::declaration(name, &vis, &attrs);
    let attributes = companion::impl_attributes(name, &attrs);
    let text = companion::name(name);
    quote_spanned! {name.span()=>
        #declaration
        #attributes
        impl #private::Consumer for #name {
            const SPEC: #private::ConsumerSpec = {
                #completion
                #private::ConsumerSpec::new(#text, ::core::module_path!(), "")
            };
            type Message = ();
            type Output = ();
            fn run(
                (): Self::Message,
                _: #private::Context,
            ) -> impl ::core::future::Future<Output = ::core::result::Result<Self::Output, #private::Failure>> + ::core::marker::Send {
                async { ::core::result::Result::Ok(()) }
            }
        }
    }
}

/// The class of an error that is not fully classified.
pub(crate) fn retryable_error(error: &ErrorType, root: &TokenStream) -> TokenStream {
    let private = quote!(#root::__private);
    let unclassified = ErrorType { name: error.name.clone(), generics: error.generics.clone(), arms: Vec::new() };
    expand::retryable_error::implementation(&unclassified, &quote!(#private::Retry::Fatal), &private)
}

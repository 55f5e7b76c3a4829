//! The expansion of `#[consumer]`: the companion type and its `Consumer`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{companion, spec};
use crate::model::{Consumer, Handler};
use crate::parse::value::KeySource;

/// The companion of `handler`. The payload's type and the return type are mentioned once: what is wrong with one is reported once.
pub(crate) fn expand(consumer: &Consumer, handler: &Handler, root: &TokenStream) -> TokenStream {
    let private = &quote!(#root::__private);
    let (name, payload) = (&handler.name, &handler.payload);
    let declaration = companion::declaration(name, &handler.vis, &handler.attrs);
    let attributes = companion::impl_attributes(name, &handler.attrs);
    let spec = spec::expand(consumer, handler, private);
    let output = match (&consumer.classify, &handler.output) {
        (Some(_), _) => quote!(::core::result::Result<(), #private::Failure>),
        (None, Some(output)) => output.clone(),
        (None, None) => quote!(()),
    };
    let run = run(consumer, handler, private);
    let business_key = consumer.idempotent.as_ref().and_then(|it| it.key.as_ref());
    let business_key = business_key.map(|(key, at)| self::business_key(key, at.span(), private));
    let check = check(handler, private);
    quote_spanned! {name.span()=>
        #declaration
        #attributes
        impl #private::Consumer for #name {
            const SPEC: #private::ConsumerSpec = #spec;
            type Message = #payload;
            type Output = #output;
            #run
            #business_key
            #check
        }
    }
}

/// Calls the function, at whose name the compiler then says what it has against its future.
fn run(consumer: &Consumer, handler: &Handler, private: &TokenStream) -> TokenStream {
    let name = &handler.name;
    let precheck =
        consumer.precheck.as_ref().map(|path| quote_spanned!(path.span()=> #private::precheck(#path(&__message).await)?;));
    let extracted =
        handler.extractors.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as #private::Extract>::extract(&__cx).await?));
    let call = quote_spanned!(name.span()=> #name(__message #(, #extracted)*).await);
    let call = match &consumer.classify {
        Some(path) => quote_spanned!(path.span()=> #private::classified(#call, #path)),
        None => call,
    };
    quote_spanned! {name.span()=>
        fn run(
            __message: Self::Message,
            __cx: #private::Context,
        ) -> impl ::core::future::Future<Output = ::core::result::Result<Self::Output, #private::NotRun>> + ::core::marker::Send {
            async move {
                #precheck
                ::core::result::Result::Ok(#call)
            }
        }
    }
}

fn business_key(key: &KeySource, span: proc_macro2::Span, private: &TokenStream) -> TokenStream {
    let key = match key {
        KeySource::Field(members) => quote_spanned!(span=> &__message #(.#members)*),
        KeySource::Function(path) => quote_spanned!(span=> &#path(__message)),
    };
    let call = quote_spanned!(span=> #private::business_key(#key));
    quote! {
        fn business_key(__message: &Self::Message) -> ::core::option::Option<::std::string::String> {
            #call
        }
    }
}

fn check(handler: &Handler, private: &TokenStream) -> Option<TokenStream> {
    let checks = handler.extractors.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as #private::Extract>::check(__states)?;));
    (!handler.extractors.is_empty()).then(|| {
        quote! {
            fn check(__states: &#private::States) -> ::core::result::Result<(), #private::MissingState> {
                #(#checks)*
                ::core::result::Result::Ok(())
            }
        }
    })
}

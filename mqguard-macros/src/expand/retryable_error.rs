//! The expansion of `#[derive(RetryableError)]`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Generics, Member};

use super::spec::duration;
use crate::model::{Arm, Class, ErrorType};

/// One arm for each variant.
pub(crate) fn expand(error: &ErrorType, root: &TokenStream) -> TokenStream {
    let private = &quote!(#root::__private);
    let arms = error.arms.iter().map(|arm| self::arm(arm, root, private));
    let body = if error.arms.is_empty() { quote!(match *self {}) } else { quote!(match self { #(#arms)* }) };
    implementation(error, &body, private)
}

/// The `impl` with this body.
pub(crate) fn implementation(error: &ErrorType, body: &TokenStream, private: &TokenStream) -> TokenStream {
    let name = &error.name;
    let generics = bounded(error, private);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        #[allow(deprecated, unused_qualifications)]
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
        impl #impl_generics #private::RetryableError for #name #type_generics #where_clause {
            fn retry(&self) -> #private::Retry {
                #body
            }
        }
    }
}

fn arm(arm: &Arm, root: &TokenStream, private: &TokenStream) -> TokenStream {
    let path = match &arm.variant {
        Some(variant) => quote!(Self::#variant),
        None => quote!(Self),
    };
    let binding = |field: &Member, name: &Ident| quote!(#path { #field: #name, .. });
    match &arm.class {
        Class::Retryable => quote!(#path { .. } => #private::Retry::Retryable,),
        Class::Fatal => quote!(#path { .. } => #private::Retry::Fatal,),
        Class::AfterFixed { delay, uncounted } => {
            let (delay, kind) = (duration(*delay, private), if *uncounted { quote!(Later) } else { quote!(After) });
            quote!(#path { .. } => #private::Retry::#kind(#delay),)
        }
        Class::AfterField { field, ty, uncounted } => {
            let name = Ident::new("__after", ty.span());
            let (binding, function) = (binding(field, &name), if *uncounted { quote!(later) } else { quote!(after) });
            let wait = quote_spanned!(ty.span()=> <#ty as #root::RetryAfter>::retry_after(#name));
            quote!(#binding => #private::#function(&#wait),)
        }
        Class::Inherit { field, ty } => {
            let name = Ident::new("__source", ty.span());
            let binding = binding(field, &name);
            let ask = quote_spanned!(ty.span()=> <#ty as #private::WrappedError>::ask(#name));
            quote!(#binding => #ask,)
        }
    }
}

/// The generics, with the bound that asking a wrapped error of a generic type needs.
fn bounded(error: &ErrorType, private: &TokenStream) -> Generics {
    let mut generics = error.generics.clone();
    let params: Vec<Ident> = generics.type_params().map(|param| param.ident.clone()).collect();
    for arm in &error.arms {
        if let Class::Inherit { ty, .. } = &arm.class
            && mentions(ty.to_token_stream(), &params)
        {
            generics.make_where_clause().predicates.push(syn::parse_quote!(#ty: #private::RetryableError));
        }
    }
    generics
}

fn mentions(tokens: TokenStream, params: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => params.contains(&ident),
        TokenTree::Group(group) => mentions(group.stream(), params),
        _ => false,
    })
}

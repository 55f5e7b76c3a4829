//! The expansion of `#[consumer]`: the companion type and its `Consumer`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::punctuated::Pair;
use syn::spanned::Spanned;
use syn::{GenericArgument, Path, PathArguments, Type};

use super::companion::{self, at};
use super::{Site, spec};
use crate::diag::Place;
use crate::model::{Consumer, Handler};
use crate::parse::field::KeySource;

/// The companion of `handler`. The payload's type and the return type are mentioned once: what is wrong with one is reported once.
pub(crate) fn expand(consumer: &Consumer, handler: &Handler, site: &Site) -> TokenStream {
    let Site { root, completion } = site;
    let private = &quote!(#root::__private);
    let (name, payload) = (&handler.name, &handler.payload);
    let declaration = companion::declaration(name, &handler.vis, &handler.attrs);
    let attributes = companion::impl_attributes(name, &handler.attrs);
    let spec = spec::expand(consumer, handler, private);
    let message = quote_spanned!(payload.span()=> type Message = #payload;);
    let output = match (&consumer.classify, &handler.output) {
        (Some(_), _) => quote!(::core::result::Result<(), #private::Failure>),
        (None, Some(output)) => outcome(output),
        (None, None) => quote!(()),
    };
    let run = run(consumer, handler, root, private);
    let business_key = consumer.idempotent.as_ref().and_then(|it| it.key.as_ref());
    let business_key = business_key.map(|(key, place)| self::business_key(key, place.span(), root, private));
    let precheck = consumer.precheck.as_ref().map(|path| precheck(path, root, private));
    let missing = missing(handler, private);
    quote_spanned! {name.span()=>
        #declaration
        #attributes
        impl #private::Consumer for #name {
            const SPEC: #private::ConsumerSpec = {
                #completion
                #spec
            };
            #message
            type Output = #output;
            #run
            #business_key
            #precheck
            #missing
        }
    }
}

/// The return type. Of `Result<(), E>` only `E` can be wrong: all of it stands where that does.
fn outcome(output: &Type) -> TokenStream {
    let tokens = output.to_token_stream();
    let Some(error) = error_of(output) else { return tokens };
    let (first, last) = Place::of_syntax(error).ends();
    let error = error.to_token_stream();
    let head = tokens.clone().into_iter().count().saturating_sub(error.clone().into_iter().count() + 1);
    let head = at(tokens.into_iter().take(head).collect(), first);
    quote_spanned!(last=> #head #error >)
}

/// `E` of `Result<(), E>`.
fn error_of(output: &Type) -> Option<&Type> {
    let Type::Path(path) = output else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let mut arguments = arguments.args.pairs().map(Pair::into_tuple);
    match (arguments.next()?, arguments.next()?, arguments.next()) {
        ((GenericArgument::Type(Type::Tuple(done)), _), (GenericArgument::Type(error), None), None) if done.elems.is_empty() => {
            Some(error)
        }
        _ => None,
    }
}

/// A variable of the expansion: the user's code cannot see it, wherever a message about it points. A constant or static of its name
/// would stand in its way, hence the underscores.
fn local(name: &str, at: Span) -> Ident {
    Ident::new(&format!("__{name}"), Span::mixed_site().located_at(at))
}

/// The types of the parameters besides the message. Each wholly at its start: what it lacks for one use it lacks for the other, and is
/// told once.
fn extractors(handler: &Handler) -> impl Iterator<Item = (TokenStream, Span)> {
    handler.extractors.iter().map(|ty| (at(ty.to_token_stream(), ty.span()), ty.span()))
}

/// Calls the function, at whose name the compiler then says what it has against its future.
fn run(consumer: &Consumer, handler: &Handler, root: &TokenStream, private: &TokenStream) -> TokenStream {
    let name = &handler.name;
    let (message, cx) = (local("message", name.span()), local("cx", name.span()));
    let extracted = extractors(handler).map(|(ty, span)| quote_spanned!(span=> <#ty as #private::Extract>::extract(&#cx).await?));
    let call = quote_spanned!(name.span()=> #name(#message #(, #extracted)*));
    let on_any_thread = quote_spanned!(name.span()=> <#private::Context>::runs_on_any_thread);
    // Best asked of the function's own future; but what a parameter lacks is said by its extraction, and would be said again of that.
    let is_alone = handler.extractors.is_empty();
    let call = if is_alone { quote_spanned!(name.span()=> #on_any_thread(#call).await) } else { quote!(#call.await) };
    let (outcome, value) = match (&consumer.classify, &handler.output) {
        (Some(path), Some(output)) => {
            let (outcome, error) = (local("outcome", output.span()), local("error", path.span()));
            let root = at(root.clone(), output.span());
            let class = quote_spanned!(path.span()=> #path(#error));
            let classified = quote_spanned!(output.span()=> <#output as #root::Fallible>::classified(#outcome, |#error| #class));
            (Some(quote!(let #outcome = #call;)), classified)
        }
        _ => (None, call),
    };
    let block = quote_spanned! {name.span()=>
        async move {
            #outcome
            ::core::result::Result::Ok(#value)
        }
    };
    let future = if is_alone { block } else { quote_spanned!(name.span()=> #on_any_thread(#block)) };
    quote_spanned! {name.span()=>
        fn run(
            #message: Self::Message,
            #cx: #private::Context,
        ) -> impl ::core::future::Future<Output = ::core::result::Result<Self::Output, #private::Failure>> + ::core::marker::Send {
            #future
        }
    }
}

/// The key of a message. The bound is asked for by the public trait itself, so that a message about it names nothing private.
fn business_key(key: &KeySource, span: Span, root: &TokenStream, private: &TokenStream) -> TokenStream {
    let (message, root) = (local("message", span), at(root.clone(), span));
    let key = match key {
        // Located there, but not as if it were written there: the compiler would advise to write the field without quotes.
        KeySource::Field(members) => quote_spanned!(Span::mixed_site().located_at(span)=> &#message #(.#members)*),
        KeySource::Function(path) => quote_spanned!(span=> &#path(#message)),
    };
    let key = quote_spanned!(span=> #root::BusinessKey::business_key(#key));
    quote! {
        fn business_key(#message: &Self::Message) -> ::core::option::Option<::std::string::String> {
            #private::business_key(&#key)
        }
    }
}

/// What runs before the function.
fn precheck(path: &Path, root: &TokenStream, private: &TokenStream) -> TokenStream {
    // Everything is as if it were written at the path: what the compiler finds wrong twice is then one message.
    let (root, private) = (written_at(root, path.span()), written_at(private, path.span()));
    quote_spanned! {path.span()=>
        fn precheck() -> impl #private::PrecheckOf<Self::Message> {
            #root::Precheck::by::<Self::Message, _, _>(#path)
        }
    }
}

/// A path as if it were written there, but for `$crate`, which means nothing elsewhere.
fn written_at(path: &TokenStream, span: Span) -> TokenStream {
    let moved = |mut token: TokenTree| {
        if token.to_string() != "$crate" {
            token.set_span(span);
        }
        token
    };
    path.clone().into_iter().map(moved).collect()
}

/// Asks the parameters what they lack.
fn missing(handler: &Handler, private: &TokenStream) -> Option<TokenStream> {
    let states = local("states", handler.name.span());
    let checks = extractors(handler).map(|(ty, span)| quote_spanned!(span=> <#ty as #private::Extract>::check(#states)));
    (!handler.extractors.is_empty()).then(|| {
        quote! {
            fn missing(#states: &#private::States) -> ::std::vec::Vec<#private::MissingState> {
                #private::missing([#(#checks),*])
            }
        }
    })
}

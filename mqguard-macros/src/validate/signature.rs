//! What a function must be like to be a consumer.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, FnArg, GenericParam, Meta, PatType, Path, ReturnType, Safety, Signature, Type};

use crate::diag::{Place, Sink};
use crate::model::Handler;
use crate::parse::function::Function;
use crate::parse::slot::Given;
use crate::parse::text_of;

/// Checks the function. `None` when it cannot be a consumer.
pub(crate) fn handler(function: &Function, classify: Option<&Given<Path>>, sink: &mut Sink) -> Option<Handler> {
    let sig = &function.sig;
    is_a_plain_async_fn(sig, sink);
    is_not_generic(sig, sink);
    let output = output(&sig.output, sink);
    if let (None, Some(classify)) = (&output, classify) {
        let text = &classify.text;
        sink.error(classify.key, format!("there is no error to classify: write `-> Result<(), E>`, or remove `{text}`"));
    }
    let parameters = parameters(sig, sink)?;
    let (payload, extractors) = parameters.split_first()?;
    message_comes_first(payload, extractors, sink);
    payload_is_owned(payload, sink);
    extractors.iter().for_each(|parameter| extractor_is_owned(parameter, sink));
    Some(Handler {
        name: sig.ident.clone(),
        vis: function.vis.clone(),
        attrs: companion_attributes(&function.attrs),
        payload: Type::clone(&payload.ty),
        extractors: extractors.iter().map(|parameter| Type::clone(&parameter.ty)).collect(),
        output,
    })
}

/// The attributes of the function that its companion type must share: when it exists, and which lints it may break.
pub(crate) fn companion_attributes(attrs: &[Attribute]) -> Vec<Attribute> {
    let shared = |name: &str| matches!(name, "cfg" | "allow" | "warn" | "deny" | "forbid");
    let mut kept = Vec::new();
    for attr in attrs {
        let name = attr.path().get_ident().map(ToString::to_string).unwrap_or_default();
        match &attr.meta {
            _ if shared(&name) || is_hidden(attr) => kept.push(attr.clone()),
            // Expected of the function, not of the companion: there it need not happen.
            Meta::List(list) if name == "expect" => {
                let lints = &list.tokens;
                kept.push(syn::parse_quote!(#[allow(#lints)]));
            }
            Meta::List(list) if name == "cfg_attr" => kept.extend(conditional(&list.tokens)),
            _ => {}
        }
    }
    kept
}

/// `#[doc(hidden)]`
fn is_hidden(attr: &Attribute) -> bool {
    matches!(&attr.meta, Meta::List(list) if attr.path().is_ident("doc") && list.tokens.to_string() == "hidden")
}

/// `cfg_attr(condition, ...)` with only the attributes that are shared.
fn conditional(tokens: &TokenStream) -> Option<Attribute> {
    use syn::parse::Parser;
    use syn::punctuated::Punctuated;
    let metas = Punctuated::<Meta, syn::Token![,]>::parse_terminated.parse2(tokens.clone()).ok()?;
    let mut metas = metas.into_iter();
    let condition = metas.next()?;
    let attrs: Vec<Attribute> = metas.map(|meta| syn::parse_quote!(#[#meta])).collect();
    let kept: Vec<Meta> = companion_attributes(&attrs).into_iter().map(|attr| attr.meta).collect();
    (!kept.is_empty()).then(|| syn::parse_quote!(#[cfg_attr(#condition, #(#kept),*)]))
}

fn is_a_plain_async_fn(sig: &Signature, sink: &mut Sink) {
    let name = &sig.ident;
    if sig.asyncness.is_none() {
        sink.error(
            Place::from(sig.fn_token.span).to(name.span().into()),
            format!("a consumer is an async fn: write `async fn {name}`"),
        );
    }
    if let Some(token) = sig.constness {
        sink.error(token.span, "a consumer runs when a message comes, not at compile time: remove `const`");
    }
    if let Safety::Unsafe(token) = sig.safety {
        sink.error(token.span, "a consumer is called by mqguard, which cannot keep promises for it: remove `unsafe`");
    }
    if let Some(abi) = &sig.abi {
        sink.error(Place::of_syntax(abi), format!("a consumer is called from Rust: remove `{}`", text_of(abi)));
    }
    if let Some(variadic) = &sig.variadic {
        sink.error(Place::of_syntax(variadic), "a consumer has a fixed number of parameters: remove `...`");
    }
}

fn is_not_generic(sig: &Signature, sink: &mut Sink) {
    let generics = &sig.generics;
    let place = Place::of_syntax(generics);
    if generics.params.iter().any(|param| !matches!(param, GenericParam::Lifetime(_))) {
        sink.error(place, "a consumer cannot be generic: name the one type that its queue carries");
    } else if !generics.params.is_empty() {
        sink.error(place, format!("a consumer owns what it takes: remove `{}` and take owned types", text_of(generics)));
    } else if let Some(clause) = &generics.where_clause {
        sink.error(Place::of_syntax(clause), "a consumer is not generic: remove the `where` clause");
    }
}

/// What is written behind `->`.
fn output(output: &ReturnType, sink: &mut Sink) -> Option<Type> {
    let ReturnType::Type(_, ty) = output else { return None };
    match visible(ty) {
        Type::ImplTrait(_) => {
            sink.error(
                Place::of_syntax(ty),
                "a consumer names what it returns: write `Result<(), E>` with the type of its error",
            );
        }
        ty if find(ty.to_token_stream(), &|token| token == "impl").is_some() => {
            sink.error(Place::of_syntax(ty), "a consumer names what it returns: write the type in place of `impl ...`");
        }
        Type::Never(_) => sink.error(Place::of_syntax(ty), "a consumer has an outcome: write `Result<(), E>`, or nothing"),
        _ => {}
    }
    Some(visible(ty).clone())
}

/// What is said of a method: there it is not known how to go on.
pub(crate) fn is_a_method(function: &Function) -> Option<(Place, String)> {
    let sig = &function.sig;
    let home = if function.has_body { "impl" } else { "trait" };
    if let Some(receiver) = sig.receiver() {
        let why = "a consumer is a free function, it has no `self`";
        let message = format!("{why}: move it out of the `{home}` and take what it needs as `State<T>`");
        return Some((Place::of_syntax(receiver), message));
    }
    let span = find(sig.to_token_stream(), &|token| token == "Self")?;
    let why = "a consumer is a free function";
    Some((span.into(), format!("{why}: move it out of the `{home}`, and name the type in place of `Self`")))
}

/// The parameters with a type. `None` when there are none.
fn parameters<'a>(sig: &'a Signature, sink: &mut Sink) -> Option<Vec<&'a PatType>> {
    let mut parameters = Vec::new();
    for input in &sig.inputs {
        let FnArg::Typed(parameter) = input else { continue };
        if let Some(attr) = parameter.attrs.iter().find(|attr| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr")) {
            let message = "a parameter of a consumer is always there: put the `cfg` on the function and write it twice";
            sink.error(Place::of_syntax(attr), message);
        }
        parameters.push(parameter);
    }
    if parameters.is_empty() {
        let name = &sig.ident;
        let message =
            format!("a consumer takes its message: write `async fn {name}(order: Order)`, or `Raw` for the undecoded body");
        sink.error(Place::from(name.span()).to(sig.paren_token.span.close().into()), message);
        return None;
    }
    Some(parameters)
}

/// The type inside parentheses and invisible groups.
fn visible(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => visible(&group.elem),
        Type::Paren(paren) => visible(&paren.elem),
        ty => ty,
    }
}

fn payload_is_owned(parameter: &PatType, sink: &mut Sink) {
    let place = Place::of_syntax(&parameter.ty);
    match visible(&parameter.ty) {
        Type::Reference(reference) => {
            let owned = owned(&reference.elem);
            sink.error(place, format!("a consumer owns its message: write `{owned}`, without `&`"));
        }
        Type::ImplTrait(_) => {
            sink.error(place, "a consumer names the one type that its queue carries: write it in place of `impl ...`")
        }
        Type::Infer(_) => sink.error(place, "a consumer names the one type that its queue carries: write it in place of `_`"),
        ty => {
            if let Some(lifetime) = borrowed(ty.to_token_stream()).or_else(|| reference(ty.to_token_stream())) {
                let message =
                    "a message cannot borrow, its bytes are gone when it runs: use owned fields, `String` in place of `&str`";
                sink.error(lifetime, message);
            }
        }
    }
}

/// Reports a `State` in the place of the message, when the message stands behind it.
fn message_comes_first(first: &PatType, others: &[&PatType], sink: &mut Sink) {
    let is_a_state = matches!(visible(&first.ty), Type::Path(path)
        if path.path.segments.last().is_some_and(|last| last.ident == "State" && !last.arguments.is_empty()));
    let message = others.iter().find(|other| !is_an_extractor(visible(&other.ty)));
    if let (true, Some(message)) = (is_a_state, message) {
        let text = |parameter: &PatType| format!("{}: {}", text_of(&parameter.pat), text_of(&parameter.ty));
        let (first, text) = (text(first), text(message));
        sink.error(Place::of_syntax(*message), format!("the message is the first parameter: write `{text}` before `{first}`"));
    }
}

/// The owned type to take in place of a reference to `ty`.
fn owned(ty: &Type) -> String {
    match visible(ty) {
        Type::Slice(_) => "Raw".to_owned(),
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        ty => text_of(ty),
    }
}

fn extractor_is_owned(parameter: &PatType, sink: &mut Sink) {
    let place = Place::of_syntax(&parameter.ty);
    match visible(&parameter.ty) {
        Type::Reference(reference) => {
            let (ty, text) = (visible(&reference.elem), text_of(&*reference.elem));
            let message = if is_an_extractor(ty) {
                format!("a consumer owns its parameters: write `{text}`, without `&`")
            } else {
                format!("a consumer owns its parameters: write `State<{text}>` for a value that all runs share")
            };
            sink.error(place, message);
        }
        Type::ImplTrait(_) => sink.error(place, "a consumer names the types of its parameters: write one in place of `impl ...`"),
        Type::Infer(_) => sink.error(place, "a consumer names the types of its parameters: write one in place of `_`"),
        _ => {}
    }
}

/// Whether the type is one of mqguard's own that come with a message.
fn is_an_extractor(ty: &Type) -> bool {
    const NAMES: [&str; 7] = ["State", "Publisher", "Context", "Headers", "Attempt", "Effects", "Tx"];
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| NAMES.iter().any(|name| last.ident == name))
}

/// The first lifetime in the type other than `'static`.
fn borrowed(tokens: TokenStream) -> Option<Span> {
    find(tokens, &|token| token.starts_with('\'') && token != "'static")
}

/// The first `&` in the type.
fn reference(tokens: TokenStream) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Punct(punct) if punct.as_char() == '&' => Some(punct.span()),
        TokenTree::Group(group) => reference(group.stream()),
        _ => None,
    })
}

/// The first identifier or lifetime that is wanted.
fn find(tokens: TokenStream, wanted: &impl Fn(&str) -> bool) -> Option<Span> {
    let mut quote = "";
    for token in tokens {
        match token {
            TokenTree::Punct(punct) => quote = if punct.as_char() == '\'' { "'" } else { "" },
            TokenTree::Ident(name) if wanted(&format!("{quote}{name}")) => return Some(name.span()),
            TokenTree::Group(group) => {
                if let Some(span) = find(group.stream(), wanted) {
                    return Some(span);
                }
            }
            TokenTree::Ident(_) | TokenTree::Literal(_) => quote = "",
        }
    }
    None
}

//! The annotated item: attributes, visibility and signature are read, the body stays as it is.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Signature, Token, Visibility};

/// A function up to its body.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) has_body: bool,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (attrs, vis, sig) = (input.call(Attribute::parse_outer)?, input.parse()?, input.parse()?);
        let has_body = !input.peek(Token![;]);
        input.parse::<TokenStream>()?;
        Ok(Self { attrs, vis, sig, has_body })
    }
}

/// The name of the function in an item that could not be read.
pub(crate) fn name_of(item: &TokenStream) -> Option<Ident> {
    let mut tokens = item.clone().into_iter().skip_while(|token| !matches!(token, TokenTree::Ident(word) if word == "fn"));
    match tokens.nth(1) {
        Some(TokenTree::Ident(name)) => Some(name),
        _ => None,
    }
}

/// What an item is that is not a function, in the user's words.
pub(crate) fn kind_of(item: &TokenStream) -> Option<&'static str> {
    const KINDS: [(&str, &str); 9] = [
        ("struct", "a struct"),
        ("enum", "an enum"),
        ("union", "a union"),
        ("trait", "a trait"),
        ("impl", "an impl"),
        ("mod", "a module"),
        ("type", "a type"),
        ("static", "a static"),
        ("use", "an import"),
    ];
    let words = item.clone().into_iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    let words: Vec<String> = words.collect();
    if !words.iter().any(|word| word == "fn") && words.iter().any(|word| word == "const") {
        return Some("a constant");
    }
    let words: Vec<String> = words.into_iter().take_while(|word| word != "fn").collect();
    words.iter().find_map(|word| KINDS.iter().find(|(keyword, _)| keyword == word)).map(|&(_, kind)| kind)
}

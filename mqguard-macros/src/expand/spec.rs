//! The `SPEC` constant.

use std::time::Duration;

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;

use super::companion;
use crate::model::{
    Backoff, Binding, Consumer, DeadLetters, ExchangeKind, Fault, Handler, Idempotent, Identity, MissingId, Mode, OnStoreDown,
    Retry, Role,
};

/// What is declared, over the defaults. `private` is the path of what macros use.
pub(crate) fn expand(consumer: &Consumer, handler: &Handler, private: &TokenStream) -> TokenStream {
    let name = companion::name(&handler.name);
    let queue = &consumer.queue;
    let mut fields = Vec::new();
    let mut set = |field: &str, value: Option<TokenStream>| {
        let field = quote::format_ident!("{field}");
        fields.extend(value.map(|value| quote!(#field: #value,)));
    };
    set("role", role(&consumer.role, private));
    set(
        "queue_type",
        consumer
            .classic
            .map(|classic| if classic { quote!(#private::QueueType::Classic) } else { quote!(#private::QueueType::Quorum) }),
    );
    set("bindings", bindings(&consumer.bindings, private));
    set("dead_letters", consumer.dead_letters.as_ref().map(|letters| some(dead_letters(letters, private))));
    set("retry", consumer.retry.as_ref().map(|retry| some(policy(retry, private))));
    set("idempotent", consumer.idempotent.as_ref().map(|it| some(idempotent(it, private))));
    set("prefetch", consumer.prefetch.map(number));
    set("concurrency", consumer.concurrency.map(|concurrency| some(number(concurrency))));
    set("timeout", consumer.timeout.map(|timeout| duration(timeout, private)));
    set("on_timeout", consumer.on_timeout.map(|rule| fault(rule, private)));
    set("on_panic", consumer.on_panic.map(|rule| fault(rule, private)));
    let new = quote!(#private::ConsumerSpec::new(#name, ::core::module_path!(), #queue));
    if fields.is_empty() { new } else { quote!(#private::ConsumerSpec { #(#fields)* ..#new }) }
}

fn some(value: TokenStream) -> TokenStream {
    quote!(::core::option::Option::Some(#value))
}

fn none() -> TokenStream {
    quote!(::core::option::Option::None)
}

fn number(number: u32) -> TokenStream {
    Literal::u32_unsuffixed(number).into_token_stream()
}

/// A duration as a constant.
pub(crate) fn duration(duration: Duration, private: &TokenStream) -> TokenStream {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    if nanos == 0 {
        let seconds = Literal::u64_unsuffixed(seconds);
        quote!(#private::Duration::from_secs(#seconds))
    } else {
        let (seconds, nanos) = (Literal::u64_unsuffixed(seconds), Literal::u32_unsuffixed(nanos));
        quote!(#private::Duration::new(#seconds, #nanos))
    }
}

fn role(role: &Role, private: &TokenStream) -> Option<TokenStream> {
    let of = match role {
        Role::Business => return None,
        Role::DeadLetters(None) => none(),
        Role::DeadLetters(Some(path)) => some(quote_spanned!(path.span()=> &<#path as #private::Consumer>::SPEC)),
    };
    Some(quote!(#private::Role::DeadLetters { of: #of }))
}

fn bindings(bindings: &[Binding], private: &TokenStream) -> Option<TokenStream> {
    let each = bindings.iter().map(|Binding { exchange, kind, routing_key }| {
        let kind = match kind {
            ExchangeKind::Direct => quote!(Direct),
            ExchangeKind::Topic => quote!(Topic),
            ExchangeKind::Fanout => quote!(Fanout),
        };
        quote!(#private::BindingSpec { exchange: #exchange, kind: #private::ExchangeKind::#kind, routing_key: #routing_key })
    });
    (!bindings.is_empty()).then(|| quote!(&[#(#each),*]))
}

fn dead_letters(letters: &DeadLetters, private: &TokenStream) -> TokenStream {
    let queue = &letters.queue;
    let exchange = match &letters.exchange {
        Some(exchange) => exchange.to_token_stream(),
        None => quote!(#private::DEFAULT_DEAD_LETTER_EXCHANGE),
    };
    quote!(#private::DeadLetterSpec { queue: #queue, exchange: #exchange })
}

fn policy(retry: &Retry, private: &TokenStream) -> TokenStream {
    let max = number(retry.max);
    let backoff = match &retry.backoff {
        Backoff::Exponential { delay, factor } => {
            let delay = duration(*delay, private);
            quote!(Exponential { delay: #delay, factor: #factor })
        }
        Backoff::Schedule(entries) => {
            let entries = entries.iter().map(|delay| duration(*delay, private));
            quote!(Schedule(&[#(#entries),*]))
        }
    };
    let optional = |value: Option<Duration>| value.map_or_else(none, |value| some(duration(value, private)));
    let (max_delay, jitter, within) = (optional(retry.max_delay), retry.jitter, optional(retry.within));
    quote! {
        #private::RetryPolicy {
            max: #max, backoff: #private::Backoff::#backoff, max_delay: #max_delay, jitter: #jitter, within: #within
        }
    }
}

fn idempotent(idempotent: &Idempotent, private: &TokenStream) -> TokenStream {
    let store = idempotent.store;
    let mut fields = TokenStream::new();
    if idempotent.key.is_some() {
        fields.extend(quote!(keyed: true,));
    }
    fields.extend(idempotent.identity.map(|identity| match identity {
        Identity::KeyAndMessageId => quote!(identity: #private::IdentityRule::KeyAndMessageId,),
        Identity::Key => quote!(identity: #private::IdentityRule::Key,),
        Identity::MessageId => quote!(identity: #private::IdentityRule::MessageId,),
    }));
    for (field, value) in [(quote!(ttl), idempotent.ttl), (quote!(lease), idempotent.lease)] {
        let value = value.map(|value| duration(value, private));
        fields.extend(value.map(|value| quote!(#field: #value,)));
    }
    fields.extend(idempotent.missing_id.map(|rule| match rule {
        MissingId::DeadLetter => quote!(missing_id: #private::MissingId::DeadLetter,),
        MissingId::Run => quote!(missing_id: #private::MissingId::Run,),
    }));
    fields.extend(idempotent.mode.map(|mode| match mode {
        Mode::Unique => quote!(mode: #private::Mode::Unique,),
        Mode::StateMachine => quote!(mode: #private::Mode::StateMachine,),
    }));
    if idempotent.transactional.is_some() {
        fields.extend(quote!(transactional: true,));
    }
    fields.extend(idempotent.on_store_down.map(|rule| match rule {
        OnStoreDown::Wait => quote!(on_store_down: #private::OnStoreDown::Wait,),
        OnStoreDown::Run => quote!(on_store_down: #private::OnStoreDown::Run,),
    }));
    let new = quote!(#private::IdempotentSpec::new(#store));
    if fields.is_empty() { new } else { quote!(#private::IdempotentSpec { #fields ..#new }) }
}

fn fault(rule: Fault, private: &TokenStream) -> TokenStream {
    match rule {
        Fault::Retry => quote!(#private::FaultRule::Retry),
        Fault::Fatal => quote!(#private::FaultRule::Fatal),
    }
}

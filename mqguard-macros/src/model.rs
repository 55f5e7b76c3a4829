//! Validated values: what the expansion is made from.

use std::time::Duration;

use proc_macro2::{Ident, Span};
use syn::{Attribute, Generics, Member, Path, Type, Visibility};

use crate::diag::Place;
use crate::parse::field::KeySource;

/// A consumer: what its attribute declares.
pub(crate) struct Consumer {
    pub(crate) queue: String,
    pub(crate) role: Role,
    pub(crate) dead_letters: Option<DeadLetters>,
    pub(crate) retry: Option<Retry>,
    pub(crate) idempotent: Option<Idempotent>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) classic: Option<bool>,
    pub(crate) prefetch: Option<u32>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_timeout: Option<Fault>,
    pub(crate) on_panic: Option<Fault>,
    pub(crate) precheck: Option<Path>,
    pub(crate) classify: Option<Path>,
}

/// What the queue carries.
pub(crate) enum Role {
    Business,
    /// Dead letters, of this consumer.
    DeadLetters(Option<Path>),
}

pub(crate) struct DeadLetters {
    pub(crate) queue: String,
    pub(crate) exchange: Option<String>,
}

pub(crate) struct Retry {
    pub(crate) max: u32,
    pub(crate) backoff: Backoff,
    pub(crate) max_delay: Option<Duration>,
    pub(crate) jitter: f64,
    pub(crate) within: Option<Duration>,
}

pub(crate) enum Backoff {
    Exponential { delay: Duration, factor: f64 },
    Schedule(Vec<Duration>),
}

pub(crate) struct Idempotent {
    pub(crate) store: &'static str,
    /// The business key, with the place that names it.
    pub(crate) key: Option<(KeySource, Place)>,
    pub(crate) identity: Option<Identity>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) lease: Option<Duration>,
    pub(crate) missing_id: Option<MissingId>,
    pub(crate) mode: Option<Mode>,
    /// Where that is said, if it is.
    pub(crate) transactional: Option<Span>,
    pub(crate) on_store_down: Option<OnStoreDown>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Identity {
    KeyAndMessageId,
    Key,
    MessageId,
}

#[derive(Clone, Copy)]
pub(crate) enum MissingId {
    DeadLetter,
    Run,
}

#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Unique,
    StateMachine,
}

#[derive(Clone, Copy)]
pub(crate) enum OnStoreDown {
    Wait,
    Run,
}

#[derive(Clone, Copy)]
pub(crate) enum Fault {
    Retry,
    Fatal,
}

pub(crate) struct Binding {
    pub(crate) exchange: String,
    pub(crate) kind: ExchangeKind,
    pub(crate) routing_key: String,
}

#[derive(Clone, Copy)]
pub(crate) enum ExchangeKind {
    Direct,
    Topic,
    Fanout,
}

/// The annotated function as the expansion needs it.
pub(crate) struct Handler {
    pub(crate) name: Ident,
    pub(crate) vis: Visibility,
    /// Attributes of the function that its companion must have too.
    pub(crate) attrs: Vec<Attribute>,
    /// The type of the first parameter.
    pub(crate) payload: Type,
    /// The types of the others.
    pub(crate) extractors: Vec<Type>,
    /// What is written behind `->`.
    pub(crate) output: Option<Type>,
}

/// An error type: how each of its forms is classified.
pub(crate) struct ErrorType {
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    pub(crate) arms: Vec<Arm>,
}

pub(crate) struct Arm {
    /// The variant; `None` for a struct.
    pub(crate) variant: Option<Ident>,
    pub(crate) class: Class,
}

pub(crate) enum Class {
    Retryable,
    Fatal,
    AfterFixed { delay: Duration, uncounted: bool },
    AfterField { field: Member, ty: Box<Type>, uncounted: bool },
    Inherit { field: Member, ty: Box<Type> },
}

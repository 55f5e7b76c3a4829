use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use super::context::{Attempt, Context, Effects};
use super::outcome::Failure;
use crate::broker::Headers;
use crate::idempotency::Database;
use crate::publish::Publisher;
use crate::retry::Retry;

/// What a handler's second and later parameters can be.
///
/// Implement it for your own types to pass what handlers need.
#[diagnostic::on_unimplemented(
    message = "a consumer cannot take a `{Self}`",
    label = "not something that comes with a message",
    note = "the message is the first parameter; the others are `State<T>`, `Publisher`, `Context`, `Headers`, `Attempt`, `Effects`, `Tx<'_, DB>`, or a type that implements `Extract`"
)]
pub trait Extract: Sized + Send {
    /// Takes the value for one delivery.
    ///
    /// # Errors
    /// The run counts as failed, classified as the failure says.
    fn extract(cx: &Context) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Whether the value can be had at all; asked once, at start.
    ///
    /// # Errors
    /// Names the state that is missing.
    fn check(states: &States) -> Result<(), MissingState> {
        let _ = states;
        Ok(())
    }
}

/// The values given to [`Guard::state`](crate::Guard::state), one for each type.
#[derive(Clone, Default)]
pub struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    /// Puts a value in. Returns whether there was one of this type already.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) -> bool {
        self.0.insert(TypeId::of::<T>(), Arc::new(value)).is_some()
    }

    /// Puts in what the guard itself provides; the user's values are of other types.
    pub(crate) fn provide<T: Send + Sync + 'static>(&mut self, value: T) {
        self.insert(Own(value));
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get(&TypeId::of::<T>())?).downcast().ok()
    }
}

impl States {
    /// The same, for a consumer whose handler gets transactions of this kind.
    pub(crate) fn with_database(&self, database: Option<Database>) -> Self {
        let mut states = self.clone();
        if let Some(database) = database {
            states.provide(database);
        }
        states
    }

    /// The database in whose transactions the handler writes; `None` when the consumer is not `transactional`.
    #[must_use]
    pub fn database(&self) -> Option<Database> {
        self.get::<Own<Database>>().map(|own| own.0)
    }
}

/// A value of the guard.
struct Own<T>(T);

impl std::fmt::Debug for States {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "States({} types)", self.0.len())
    }
}

/// What a parameter needs and does not get.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissingState {
    /// A `State` of this type, which no `Guard::state` gave.
    #[error("nothing of type `{0}` was registered: call `.state(...)` with one on the guard")]
    State(&'static str),
    /// Something else, and what to do about it.
    #[error("{0}")]
    Other(String),
}

/// The errors among the results.
pub fn missing<const N: usize>(checks: [Result<(), MissingState>; N]) -> Vec<MissingState> {
    checks.into_iter().filter_map(Result::err).collect()
}

/// A value registered with [`Guard::state`](crate::Guard::state), shared by all runs. A parameter can take it apart: `State(db): State<Db>`.
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> Extract for State<T> {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        let missing = || Failure::of(Retry::Fatal, MissingState::State(std::any::type_name::<T>()));
        cx.states().get().map(Self).ok_or_else(missing)
    }

    fn check(states: &States) -> Result<(), MissingState> {
        states.get::<T>().map(|_| ()).ok_or(MissingState::State(std::any::type_name::<T>()))
    }
}

#[diagnostic::do_not_recommend]
impl Extract for Publisher {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        let missing = || Failure::of(Retry::Fatal, MissingState::State(std::any::type_name::<Self>()));
        cx.states().get::<Own<Self>>().map(|own| own.0.clone()).ok_or_else(missing)
    }
}

#[diagnostic::do_not_recommend]
impl Extract for Context {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        Ok(cx.clone())
    }
}

#[diagnostic::do_not_recommend]
impl Extract for Attempt {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        Ok(cx.attempt())
    }
}

#[diagnostic::do_not_recommend]
impl Extract for Headers {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        Ok(cx.message().headers.clone())
    }
}

#[diagnostic::do_not_recommend]
impl Extract for Effects {
    async fn extract(cx: &Context) -> Result<Self, Failure> {
        Ok(cx.effects())
    }
}

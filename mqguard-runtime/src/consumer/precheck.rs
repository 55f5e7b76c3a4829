use std::future::{Future, ready};
use std::marker::PhantomData;

use super::context::Context;
use super::extract::{Extract, MissingState, States, missing};
use super::outcome::{Failure, RunError};
use crate::retry::Classified;

/// What a `precheck` says before each run of the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precheck {
    /// Run the handler.
    Proceed,
    /// There is nothing to do: the message counts as processed.
    Skip,
}

/// What a precheck function can return: [`Precheck`], or `Result<Precheck, E>` where `E` derives `RetryableError`.
#[diagnostic::on_unimplemented(
    message = "a precheck cannot return `{Self}`",
    label = "not the outcome of a precheck",
    note = "return `Precheck`, or `Result<Precheck, E>` where `E` derives `RetryableError`"
)]
pub trait PrecheckOutcome {
    /// The outcome in one form.
    ///
    /// # Errors
    /// The failure, classified.
    fn into_precheck(self) -> Result<Precheck, Failure>;
}

#[diagnostic::do_not_recommend]
impl PrecheckOutcome for Precheck {
    fn into_precheck(self) -> Result<Precheck, Failure> {
        Ok(self)
    }
}

impl<E: Classified + RunError> PrecheckOutcome for Result<Precheck, E> {
    fn into_precheck(self) -> Result<Precheck, Failure> {
        self.map_err(|error| {
            let retry = error.retry();
            Failure::of(retry, error)
        })
    }
}

#[diagnostic::do_not_recommend]
impl PrecheckOutcome for Result<Precheck, Failure> {
    fn into_precheck(self) -> Self {
        self
    }
}

impl Precheck {
    /// The precheck that an attribute names. What is returned says nothing of `F`: that it is a precheck is then asked here alone, and a
    /// mistake is told once.
    #[doc(hidden)]
    pub fn by<M, F, Params>(function: F) -> impl PrecheckOf<M>
    where
        M: Sync,
        F: for<'a> PrecheckFn<'a, M, Params> + Send + Sync,
        for<'a> <F as PrecheckFn<'a, M, Params>>::Output: PrecheckOutcome,
        for<'a> <F as PrecheckFn<'a, M, Params>>::Future: Send,
        Params: PrecheckParams,
    {
        Named(function, PhantomData)
    }
}

/// An `async fn` that can be named in `precheck = path`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a precheck of `{M}`",
    label = "not an `async fn` that takes a `&{M}` first",
    note = "a precheck is an `async fn(&{M}) -> Precheck`: write `async fn still_wanted(message: &{M}) -> Precheck`",
    note = "behind the message it may take up to four parameters of a handler: `State<T>`, `Context`, and so on"
)]
pub trait PrecheckFn<'a, M, Params> {
    /// What it returns.
    type Output;
    /// The future of a call.
    type Future: Future<Output = Self::Output>;

    /// Calls it.
    fn call(&self, message: &'a M, params: Params) -> Self::Future;
}

/// What a precheck takes besides the message: up to four parameters.
pub trait PrecheckParams: Sized + Send {
    /// Takes them for one delivery.
    fn extract(cx: &Context) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// The states that they need and that are not registered.
    fn missing(states: &States) -> Vec<MissingState>;
}

macro_rules! parameters {
    ($($ty:ident $name:ident),*) => {
        impl<'a, F, M: 'a, Fut, $($ty),*> PrecheckFn<'a, M, ($($ty,)*)> for F
        where
            F: Fn(&'a M, $($ty),*) -> Fut,
            Fut: Future,
        {
            type Output = Fut::Output;
            type Future = Fut;

            fn call(&self, message: &'a M, ($($name,)*): ($($ty,)*)) -> Fut {
                self(message, $($name),*)
            }
        }

        impl<$($ty: Extract),*> PrecheckParams for ($($ty,)*) {
            async fn extract(_cx: &Context) -> Result<Self, Failure> {
                Ok(($($ty::extract(_cx).await?,)*))
            }

            fn missing(_states: &States) -> Vec<MissingState> {
                missing([$($ty::check(_states)),*])
            }
        }
    };
}

parameters!();
parameters!(A a);
parameters!(A a, B b);
parameters!(A a, B b, C c);
parameters!(A a, B b, C c, D d);

/// The precheck of a consumer.
pub trait PrecheckOf<M>: Send + Sync {
    /// Runs it.
    fn check(&self, message: &M, cx: &Context) -> impl Future<Output = Result<Precheck, Failure>> + Send;

    /// The states that its parameters need and that are not registered.
    fn missing(&self, states: &States) -> Vec<MissingState>;
}

/// There is none: each run proceeds.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoPrecheck;

impl<M> PrecheckOf<M> for NoPrecheck {
    fn check(&self, _message: &M, _cx: &Context) -> impl Future<Output = Result<Precheck, Failure>> + Send {
        ready(Ok(Precheck::Proceed))
    }

    fn missing(&self, _states: &States) -> Vec<MissingState> {
        Vec::new()
    }
}

/// A precheck that an attribute names.
struct Named<F, Params>(F, PhantomData<fn() -> Params>);

impl<M, F, Params> PrecheckOf<M> for Named<F, Params>
where
    M: Sync,
    F: for<'a> PrecheckFn<'a, M, Params> + Send + Sync,
    for<'a> <F as PrecheckFn<'a, M, Params>>::Output: PrecheckOutcome,
    for<'a> <F as PrecheckFn<'a, M, Params>>::Future: Send,
    Params: PrecheckParams,
{
    async fn check(&self, message: &M, cx: &Context) -> Result<Precheck, Failure> {
        self.0.call(message, Params::extract(cx).await?).await.into_precheck()
    }

    fn missing(&self, states: &States) -> Vec<MissingState> {
        Params::missing(states)
    }
}

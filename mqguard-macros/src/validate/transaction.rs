//! The rules of `transactional` and `Tx`: each needs the other, and a database.

use std::time::Duration;

use proc_macro2::Span;
use syn::{GenericArgument, PathArguments, Type};

use crate::diag::{Place, Sink};
use crate::model::{Consumer, Handler};
use crate::parse::consumer::IdempotentArgs;

/// How long a claim is held without renewal, unless it is said otherwise. Short: it costs nothing when it lapses under a run that is not
/// dead, for that run cannot commit then.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// The stores with transactions, and the type that stands for each in a `Tx`.
const DATABASES: [(&str, &str); 3] = [("mysql", "MySql"), ("postgres", "Postgres"), ("sqlite", "Sqlite")];

/// Checks the keys beside `transactional`, which is at this place.
pub(super) fn attribute(at: Span, args: &IdempotentArgs, sink: &mut Sink) {
    if let Some(store) = args.store.get()
        && !DATABASES.iter().any(|(name, _)| *name == store.value)
    {
        let name = store.value;
        sink.error(
            store.at,
            format!(
                "`transactional` needs a database, which `{name}` is not: write `store = \"postgres\"`, \"mysql\" or \"sqlite\""
            ),
        );
    }
    if let Some(rule) = args.on_store_down.get()
        && rule.value == "run"
    {
        let text = &rule.text;
        sink.error(
            Place::from(at),
            format!("a transaction needs its database: remove `{text}`, while the store is away there is nothing to write to"),
        );
    }
}

/// Checks that a consumer is `transactional` if and only if its function takes a `Tx`, of its store's database.
pub(crate) fn agree(consumer: &Consumer, handler: &Handler, sink: &mut Sink) -> bool {
    let mut taken = handler.extractors.iter().filter_map(|ty| Some((ty, transaction(ty)?)));
    let idempotent = consumer.idempotent.as_ref();
    let transactional = idempotent.and_then(|idempotent| Some((idempotent.store, idempotent.transactional?)));
    let database = |store: &str| DATABASES.iter().find(|(name, _)| *name == store).map_or("Postgres", |(_, database)| database);
    match (transactional, taken.next()) {
        (None, None) => return true,
        (Some((store, at)), None) => {
            let database = database(store);
            let message = format!(
                "`transactional` is for a function that writes in the transaction: take it as a parameter, `mut tx: Tx<'_, {database}>`, \
                 or remove `transactional`"
            );
            sink.error(at, message);
        }
        (None, Some((ty, named))) => {
            let store =
                DATABASES.iter().find(|(_, database)| Some(*database) == named.as_deref()).map_or("postgres", |(store, _)| store);
            let message =
                format!("a `Tx` comes with a transactional consumer: write `idempotent(store = \"{store}\", transactional)`");
            sink.error(Place::of_syntax(ty), message);
        }
        (Some((store, _)), Some((ty, named))) => {
            let is_known = DATABASES.iter().any(|(_, database)| Some(*database) == named.as_deref());
            let expected = database(store);
            if is_known && named.as_deref() != Some(expected) {
                sink.error(
                    Place::of_syntax(ty),
                    format!("the store is `{store}`: write `Tx<'_, {expected}>`, or name the other store"),
                );
            }
            if let Some((second, _)) = taken.next() {
                sink.error(Place::of_syntax(second), "a run has one transaction: take one `Tx`");
            }
        }
    }
    sink.is_empty()
}

/// Of a `Tx`, the name of its database; empty when there is none to see.
fn transaction(ty: &Type) -> Option<Option<String>> {
    let path = match ty {
        Type::Path(path) => path,
        Type::Reference(reference) => return transaction(&reference.elem),
        _ => return None,
    };
    let last = path.path.segments.last().filter(|last| last.ident == "Tx")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Some(None) };
    let database = arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(Type::Path(path)) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    });
    Some(database)
}

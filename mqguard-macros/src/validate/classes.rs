//! How each form of an error is classified.

use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, Member, Path};

use crate::diag::{Place, Sink, nearest};
use crate::model::{Arm, Class, ErrorType};
use crate::parse::classes::{After, Classes, Given, Written, classes};

/// An error type that was read, with the `crate = path` on it.
pub(crate) struct Checked {
    pub(crate) error: ErrorType,
    pub(crate) root: Option<Path>,
    /// Whether each form has its class. One that was misspelt is reported by the compiler.
    pub(crate) complete: bool,
}

/// Reads and checks a `#[derive(RetryableError)]`. Forms that have no class are reported and left out.
pub(crate) fn error_type(input: &DeriveInput, sink: &mut Sink) -> Checked {
    let mut on_item = classes(&input.attrs, sink);
    let root = on_item.root.take();
    let forms = match &input.data {
        Data::Enum(data) => data.variants.len(),
        Data::Struct(_) | Data::Union(_) => 1,
    };
    let arms: Vec<Arm> = match &input.data {
        Data::Struct(data) => structure(&input.ident, &input.attrs, &data.fields, on_item, sink),
        Data::Enum(data) => {
            let default = only_one(&input.ident, on_item.given, sink);
            let undecided = default.is_none() && !on_item.faulty;
            let default = default.filter(|default| is_a_default(default, sink));
            data.variants.iter().filter_map(|variant| arm(variant, default.as_ref(), undecided, sink)).collect()
        }
        Data::Union(data) => {
            let message = "a union cannot say which failure it is: write an enum with one variant a failure";
            sink.error(data.union_token.span, message);
            Vec::new()
        }
    };
    let complete = arms.len() == forms;
    Checked { complete, error: ErrorType { name: input.ident.clone(), generics: input.generics.clone(), arms }, root }
}

/// The one class that is given; more than one is reported.
fn only_one(name: &Ident, given: Vec<Given>, sink: &mut Sink) -> Option<Given> {
    let mut given = given.into_iter();
    let first = given.next()?;
    for other in given {
        let (first, other_text) = (&first.text, &other.text);
        let problem = if *first == *other_text {
            format!("`{other_text}` is given twice for `{name}`: keep one of the two")
        } else {
            format!("`{name}` is both `{first}` and `{other_text}`: keep one of the two")
        };
        sink.error(other.at, problem);
    }
    Some(first)
}

/// The default of an enum cannot name fields: variants have their own.
fn is_a_default(given: &Given, sink: &mut Sink) -> bool {
    let (at, what) = match &given.class {
        Written::Inherit { at, .. } => (*at, "inherit".to_owned()),
        Written::After { delay: After::Field(field, _), at, .. } => (*at, format!("after = {}", name_of(field))),
        _ => return true,
    };
    sink.error(at, format!("the default of an enum names no field: write `#[retryable({what})]` on the variants that have it"));
    false
}

fn arm(variant: &syn::Variant, default: Option<&Given>, undecided: bool, sink: &mut Sink) -> Option<Arm> {
    let name = &variant.ident;
    let on_variant = classes(&variant.attrs, sink);
    let misplaced = not_on_fields(name, &variant.fields, sink);
    if let Some(root) = &on_variant.root {
        let line = format!("#[retryable(crate = {})]", crate::parse::text_of(root));
        sink.error(Place::of_syntax(root), format!("the crate is named once: write `{line}` on the enum, and not on `{name}`"));
    }
    let faulty = on_variant.faulty || on_variant.root.is_some() || misplaced || variant.attrs.iter().any(nearly_classifies);
    let own = only_one(name, on_variant.given, sink);
    if own.is_none() && !faulty && undecided {
        let message = format!("`{name}` is not classified: write `#[retryable]` or `#[fatal]` on it");
        sink.error(name.span(), message);
    }
    let given = own.as_ref().or(default)?;
    Some(Arm { variant: Some(name.clone()), class: class(name, &given.class, &variant.fields, sink)? })
}

/// Reports classes on the fields of a variant. Returns whether there are any.
fn not_on_fields(name: &Ident, fields: &Fields, sink: &mut Sink) -> bool {
    let mut found = false;
    for attr in fields.iter().flat_map(|field| &field.attrs).filter(|attr| classifies(attr)) {
        let text = crate::parse::text_of(&attr.meta);
        let message = format!("a variant is classified as a whole: write `#[{text}]` on `{name}`");
        sink.error(Place::of_syntax(&attr.meta), message);
        found = true;
    }
    found
}

fn classifies(attr: &Attribute) -> bool {
    attr.path().is_ident("retryable") || attr.path().is_ident("fatal")
}

/// Whether an attribute is a misspelling that the compiler itself reports.
fn nearly_classifies(attr: &Attribute) -> bool {
    let name = attr.path().get_ident().map(ToString::to_string).unwrap_or_default();
    !classifies(attr) && nearest(&name, ["retryable", "fatal"]).is_some()
}

fn structure(name: &Ident, attrs: &[Attribute], fields: &Fields, on_item: Classes, sink: &mut Sink) -> Vec<Arm> {
    let (mut given, mut faulty) = (on_item.given, on_item.faulty || attrs.iter().any(nearly_classifies));
    for (index, field) in fields.iter().enumerate() {
        let on_field = classes(&field.attrs, sink);
        faulty |= on_field.faulty;
        for mut class in on_field.given {
            match &mut class.class {
                Written::Inherit { field: named, .. } => *named = Some(member(index, field)),
                _ => sink.error(class.at, format!("an error is classified as a whole: write `{}` on `{name}`", class.text)),
            }
            given.push(class);
        }
    }
    let Some(given) = only_one(name, given, sink) else {
        if !faulty {
            sink.error(name.span(), format!("`{name}` is not classified: write `#[retryable]` or `#[fatal]` on it"));
        }
        return Vec::new();
    };
    class(name, &given.class, fields, sink).map(|class| Arm { variant: None, class }).into_iter().collect()
}

fn class(holder: &Ident, written: &Written, fields: &Fields, sink: &mut Sink) -> Option<Class> {
    Some(match written {
        Written::Retryable => Class::Retryable,
        Written::Fatal => Class::Fatal,
        Written::After { delay: After::Fixed(delay), uncounted, .. } => {
            Class::AfterFixed { delay: *delay, uncounted: *uncounted }
        }
        Written::After { delay: After::Field(field, at), uncounted, .. } => {
            if let Member::Unnamed(index) = field
                && fields.iter().nth(index.index as usize).is_none_or(|field| field.ident.is_some())
            {
                let number = index.index;
                let message = format!("`{holder}` has no field `{number}`; a duration is written `after = \"{number}s\"`");
                sink.error(*at, message);
                return None;
            }
            let ty = Box::new(find(holder, field, fields, (*at).into(), sink)?.ty.clone());
            Class::AfterField { field: field.clone(), ty, uncounted: *uncounted }
        }
        Written::Inherit { field, at } => {
            let field = match field {
                Some(field) => field.clone(),
                None => wrapped(holder, fields, *at, sink)?,
            };
            let ty = Box::new(find(holder, &field, fields, *at, sink)?.ty.clone());
            Class::Inherit { field, ty }
        }
    })
}

fn member(index: usize, field: &syn::Field) -> Member {
    field.ident.clone().map_or_else(|| Member::from(index), Member::Named)
}

fn name_of(member: &Member) -> String {
    match member {
        Member::Named(name) => name.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// The field of this name; reported at `at` when there is none.
fn find<'a>(holder: &Ident, wanted: &Member, fields: &'a Fields, at: Place, sink: &mut Sink) -> Option<&'a syn::Field> {
    let wanted = name_of(wanted);
    let named = |(index, field): (usize, &'a syn::Field)| (name_of(&member(index, field)), field);
    let known: Vec<(String, &syn::Field)> = fields.iter().enumerate().map(named).collect();
    if let Some((_, field)) = known.iter().find(|(name, _)| *name == wanted) {
        return Some(field);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let question = nearest(&wanted, names.iter().copied()).map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
    let has = if names.is_empty() { "it has none".to_owned() } else { format!("it has `{}`", names.join("`, `")) };
    let end = if question.is_empty() { format!(": {has}") } else { question };
    sink.error(at, format!("`{holder}` has no field `{wanted}`{end}"));
    None
}

/// The field that holds the wrapped error.
fn wrapped(holder: &Ident, fields: &Fields, at: Place, sink: &mut Sink) -> Option<Member> {
    let marked =
        |field: &syn::Field| field.attrs.iter().any(|attr| attr.path().is_ident("source") || attr.path().is_ident("from"));
    let by_mark = fields.iter().position(marked);
    let alone = (fields.len() == 1).then_some(0);
    let by_name = || fields.iter().position(|field| field.ident.as_ref().is_some_and(|name| name == "source"));
    if let Some(index) = by_mark.or(alone).or_else(by_name) {
        return fields.iter().nth(index).map(|field| member(index, field));
    }
    let message = match fields.len() {
        0 => format!("`{holder}` wraps no error to ask: write `#[retryable]` or `#[fatal]`"),
        count => format!("`{holder}` has {count} fields: name the one to ask, `inherit = source`"),
    };
    sink.error(at, message);
    None
}

use std::borrow::Cow;

/// A field that can be the business key of a message: text, an integer, a UUID, or an `Option` of one.
///
/// An empty or blank key is none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a business key",
    label = "not text, an integer or a UUID",
    note = "name a field that is one, or a function: `key = order_key` with `fn order_key(order: &Order) -> String`"
)]
pub trait BusinessKey {
    /// The key as text; `None` when there is none.
    fn business_key(&self) -> Option<Cow<'_, str>>;
}

#[diagnostic::do_not_recommend]
impl BusinessKey for str {
    fn business_key(&self) -> Option<Cow<'_, str>> {
        (!self.trim().is_empty()).then_some(Cow::Borrowed(self))
    }
}

impl<T: BusinessKey> BusinessKey for Option<T> {
    fn business_key(&self) -> Option<Cow<'_, str>> {
        self.as_ref()?.business_key()
    }
}

macro_rules! by_reference {
    ($($ty:ty),+) => {$(
        impl<T: BusinessKey + ?Sized> BusinessKey for $ty {
            fn business_key(&self) -> Option<Cow<'_, str>> {
                (**self).business_key()
            }
        }
    )+};
}
by_reference!(&T, Box<T>, std::sync::Arc<T>, std::rc::Rc<T>);

#[diagnostic::do_not_recommend]
impl BusinessKey for String {
    fn business_key(&self) -> Option<Cow<'_, str>> {
        self.as_str().business_key()
    }
}

#[diagnostic::do_not_recommend]
impl BusinessKey for Cow<'_, str> {
    fn business_key(&self) -> Option<Cow<'_, str>> {
        (**self).business_key()
    }
}

macro_rules! by_display {
    ($($ty:ty),+) => {$(
        #[diagnostic::do_not_recommend]
        impl BusinessKey for $ty {
            fn business_key(&self) -> Option<Cow<'_, str>> {
                Some(Cow::Owned(self.to_string()))
            }
        }
    )+};
}
by_display!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, char, bool, uuid::Uuid);

/// The key of a message as the store sees it.
#[must_use]
pub fn business_key(field: &(impl BusinessKey + ?Sized)) -> Option<String> {
    field.business_key().map(Cow::into_owned)
}

use std::collections::BTreeMap;
use std::collections::btree_map;

use bytes::Bytes;

/// The headers of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Headers(BTreeMap<String, HeaderValue>);

/// A header's value: every type that an AMQP 0-9-1 field table can carry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HeaderValue {
    /// No value.
    Void,
    /// A boolean.
    Bool(bool),
    /// A signed 8-bit integer.
    I8(i8),
    /// An unsigned 8-bit integer.
    U8(u8),
    /// A signed 16-bit integer.
    I16(i16),
    /// An unsigned 16-bit integer.
    U16(u16),
    /// A signed 32-bit integer.
    I32(i32),
    /// An unsigned 32-bit integer.
    U32(u32),
    /// A signed 64-bit integer.
    I64(i64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A decimal: `value / 10^scale`.
    Decimal {
        /// Digits after the point.
        scale: u8,
        /// All digits.
        value: u32,
    },
    /// Text, or bytes that are not UTF-8: AMQP does not tell them apart.
    Text(Bytes),
    /// Bytes.
    Bytes(Bytes),
    /// Seconds since 1970 UTC.
    Timestamp(u64),
    /// A list.
    Array(Vec<HeaderValue>),
    /// A table.
    Table(Headers),
}

impl Headers {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value under `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&HeaderValue> {
        self.0.get(name)
    }

    /// The text under `name`; `None` when there is none or it is not UTF-8 text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Puts a value under `name`, in place of one that is there.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<HeaderValue>) {
        self.0.insert(name.into(), value.into());
    }

    /// Takes the value under `name` out.
    pub fn remove(&mut self, name: &str) -> Option<HeaderValue> {
        self.0.remove(name)
    }

    /// Keeps only the headers for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &HeaderValue) -> bool) {
        self.0.retain(|name, value| keep(name, value));
    }

    /// All headers, by name.
    pub fn iter(&self) -> btree_map::Iter<'_, String, HeaderValue> {
        self.0.iter()
    }

    /// How many headers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The size of the headers in a frame, in bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        4 + self.0.iter().map(|(name, value)| 1 + name.len() + value.encoded_len()).sum::<usize>()
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = (&'a String, &'a HeaderValue);
    type IntoIter = btree_map::Iter<'a, String, HeaderValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl IntoIterator for Headers {
    type Item = (String, HeaderValue);
    type IntoIter = btree_map::IntoIter<String, HeaderValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<(String, HeaderValue)> for Headers {
    fn from_iter<I: IntoIterator<Item = (String, HeaderValue)>>(headers: I) -> Self {
        Self(headers.into_iter().collect())
    }
}

impl HeaderValue {
    /// The text, when this is UTF-8 text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// The number, when this is an integer of any width.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::I8(n) => Some(n.into()),
            Self::U8(n) => Some(n.into()),
            Self::I16(n) => Some(n.into()),
            Self::U16(n) => Some(n.into()),
            Self::I32(n) => Some(n.into()),
            Self::U32(n) => Some(n.into()),
            Self::I64(n) => Some(n),
            _ => None,
        }
    }

    /// The list, when this is one.
    #[must_use]
    pub fn as_array(&self) -> Option<&[HeaderValue]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The table, when this is one.
    #[must_use]
    pub fn as_table(&self) -> Option<&Headers> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The size of the value in a frame, with its type, in bytes.
    pub(crate) fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Void => 0,
            Self::Bool(_) | Self::I8(_) | Self::U8(_) => 1,
            Self::I16(_) | Self::U16(_) => 2,
            Self::I32(_) | Self::U32(_) | Self::F32(_) => 4,
            Self::I64(_) | Self::F64(_) | Self::Timestamp(_) => 8,
            Self::Decimal { .. } => 5,
            Self::Text(bytes) | Self::Bytes(bytes) => 4 + bytes.len(),
            Self::Array(values) => 4 + values.iter().map(Self::encoded_len).sum::<usize>(),
            Self::Table(table) => table.encoded_len(),
        }
    }
}

impl From<&str> for HeaderValue {
    fn from(text: &str) -> Self {
        Self::Text(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for HeaderValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

macro_rules! from_value {
    ($($ty:ty => $variant:ident),+ $(,)?) => {$(
        impl From<$ty> for HeaderValue {
            fn from(value: $ty) -> Self {
                Self::$variant(value)
            }
        }
    )+};
}
from_value!(bool => Bool, i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, f32 => F32, f64 => F64,
    Vec<HeaderValue> => Array, Headers => Table);

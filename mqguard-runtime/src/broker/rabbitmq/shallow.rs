//! What is changed in the headers of received messages: tables and lists that are nested deeper than anybody means.
//!
//! The client library reads them recursively: a few kilobytes of lists in lists overflow its stack, and end the process before anything
//! can count that. From [`DEEPEST`] on they are passed on as the bytes that they are. Both have their length in front, so that only the
//! type changes. Source: AMQP 0-9-1, sections 4.2.5.5 and 4.2.6.1, with RabbitMQ's types of fields.

/// Levels of tables and lists that stay what they are. A broker's own `x-death` has three.
const DEEPEST: usize = 32;

const CONTENT_HEADER: u8 = 2;
const LIST: u8 = b'A';
const TABLE: u8 = b'F';
const BYTES: u8 = b'x';

/// Follows the frames of a connection, byte by byte as they come.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Type, channel and length of the frame, as far as they came.
    head: [u8; 7],
    have: usize,
    /// Bytes of the frame that are to come, with the one that ends it.
    left: usize,
    header: Header,
}

impl Frames {
    /// Follows these bytes, and changes the type of what is too deep.
    pub(super) fn pass(&mut self, mut bytes: &mut [u8]) {
        while let Some(first) = bytes.first() {
            if let Some(byte) = self.head.get_mut(self.have) {
                *byte = *first;
                self.have += 1;
                bytes = bytes.split_first_mut().map(|(_, rest)| rest).unwrap_or_default();
                if let [kind, _, _, length @ ..] = self.head
                    && self.have == self.head.len()
                {
                    self.left = (u32::from_be_bytes(length) as usize).saturating_add(1);
                    self.header.begin(kind == CONTENT_HEADER);
                }
                continue;
            }
            let (part, rest) = bytes.split_at_mut(self.left.min(bytes.len()));
            self.header.pass(part);
            self.left -= part.len();
            if self.left == 0 {
                self.have = 0;
            }
            bytes = rest;
        }
    }
}

/// The header of a message: its properties, among them the table of headers.
#[derive(Debug, Default)]
struct Header {
    next: Next,
    /// Bytes of the header so far.
    at: usize,
    /// A number that comes in several bytes.
    number: usize,
    /// Properties before the table.
    before: u16,
    /// The tables and lists that are open: where each ends, and whether it is a table.
    open: Vec<(usize, bool)>,
}

/// What the next byte is.
#[derive(Debug, Clone, Copy, Default)]
enum Next {
    /// Class, weight, length of the body, then the flags that say which properties there are.
    Preamble,
    /// The length of a property before the table.
    Property,
    /// The length of a field's name.
    Name,
    /// The type of a field.
    Type,
    /// Of a length, so many bytes are to come.
    Length { left: u8, of: Content },
    /// Nothing of interest, so many bytes of it.
    Skip { left: usize, then: Then },
    /// Nothing of interest up to the end of the frame.
    #[default]
    Rest,
}

#[derive(Debug, Clone, Copy)]
enum Content {
    Table,
    List,
    Opaque,
}

#[derive(Debug, Clone, Copy)]
enum Then {
    Property,
    Type,
    Field,
}

const PREAMBLE: usize = 14;
/// In the flags: content type and content encoding, which come before the table of headers.
const BEFORE: [u16; 2] = [1 << 15, 1 << 14];
const HEADERS: u16 = 1 << 13;

impl Header {
    fn begin(&mut self, is_header: bool) {
        self.open.clear();
        (self.at, self.number) = (0, 0);
        self.next = if is_header { Next::Preamble } else { Next::Rest };
    }

    fn pass(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let taken = match self.next {
                Next::Rest => return,
                Next::Skip { left, then } => {
                    let count = left.min(bytes.len());
                    self.at += count;
                    self.skip(left - count, then);
                    count
                }
                _ => {
                    self.at += 1;
                    if let Some(byte) = bytes.first_mut() {
                        self.take(byte);
                    }
                    1
                }
            };
            bytes = bytes.get_mut(taken..).unwrap_or_default();
        }
    }

    fn take(&mut self, byte: &mut u8) {
        let value = usize::from(*byte);
        match self.next {
            Next::Preamble => {
                self.number = (self.number << 8 | value) & 0xffff;
                if self.at == PREAMBLE {
                    let flags = u16::try_from(self.number).unwrap_or_default();
                    self.before = BEFORE.iter().map(|flag| u16::from(flags & flag != 0)).sum();
                    if flags & HEADERS == 0 { self.next = Next::Rest } else { self.property() }
                }
            }
            Next::Property => self.skip(value, Then::Property),
            Next::Name => self.skip(value, Then::Type),
            Next::Type => self.field(byte),
            Next::Length { left, of } => {
                self.number = self.number << 8 | value;
                match (left, of) {
                    (2.., _) => self.next = Next::Length { left: left - 1, of },
                    (_, Content::Opaque) => self.skip(self.number, Then::Field),
                    (_, Content::Table | Content::List) => {
                        self.open.push((self.at.saturating_add(self.number), matches!(of, Content::Table)));
                        self.after_field();
                    }
                }
            }
            Next::Skip { .. } | Next::Rest => {}
        }
    }

    fn field(&mut self, kind: &mut u8) {
        if matches!(*kind, LIST | TABLE) && self.open.len() >= DEEPEST {
            *kind = BYTES;
        }
        match *kind {
            b't' | b'b' | b'B' => self.skip(1, Then::Field),
            b's' | b'U' | b'u' => self.skip(2, Then::Field),
            b'I' | b'i' | b'f' => self.skip(4, Then::Field),
            b'D' => self.skip(5, Then::Field),
            b'L' | b'l' | b'd' | b'T' => self.skip(8, Then::Field),
            b'V' => self.after_field(),
            b'S' | BYTES => self.length(Content::Opaque),
            LIST => self.length(Content::List),
            TABLE => self.length(Content::Table),
            // The client library complains.
            _ => self.next = Next::Rest,
        }
    }

    fn length(&mut self, of: Content) {
        self.number = 0;
        self.next = Next::Length { left: 4, of };
    }

    fn skip(&mut self, left: usize, then: Then) {
        match (left, then) {
            (1.., _) => self.next = Next::Skip { left, then },
            (0, Then::Property) => self.property(),
            (0, Then::Type) => self.next = Next::Type,
            (0, Then::Field) => self.after_field(),
        }
    }

    fn property(&mut self) {
        match self.before.checked_sub(1) {
            Some(before) => (self.before, self.next) = (before, Next::Property),
            None => self.length(Content::Table),
        }
    }

    /// Where a field ends, what it is in may end too.
    fn after_field(&mut self) {
        while let Some((end, _)) = self.open.last()
            && self.at >= *end
        {
            self.open.pop();
        }
        self.next = match self.open.last() {
            Some((_, true)) => Next::Name,
            Some((_, false)) => Next::Type,
            None => Next::Rest,
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn with_length(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn named(name: &str, value: &[u8]) -> Vec<u8> {
        [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), value].concat()
    }

    /// A list or table in a list or table, and so on.
    fn nested(depth: usize) -> Vec<u8> {
        let mut value = b"t\x01".to_vec();
        for level in 0..depth {
            let (kind, content) = if level % 2 == 0 { (LIST, value) } else { (TABLE, named("n", &value)) };
            value = [&[kind][..], &with_length(&content)].concat();
        }
        value
    }

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        [&[kind, 0, 1][..], &with_length(payload), &[0xce]].concat()
    }

    /// The frame of a message with these fields among its headers.
    fn header(fields: &[u8]) -> Vec<u8> {
        let flags: u16 = BEFORE[0] | HEADERS | 1 << 7;
        let properties = [named("text/plain", b""), with_length(fields), named("message id", b"")];
        let preamble = [&[0, 60, 0, 0][..], &7u64.to_be_bytes(), &flags.to_be_bytes()].concat();
        frame(CONTENT_HEADER, &[preamble, properties.concat()].concat())
    }

    /// However the bytes are cut.
    fn passed(bytes: &[u8]) -> Vec<u8> {
        let mut whole = bytes.to_vec();
        Frames::default().pass(&mut whole);
        for step in [1, 2, 3, 7, 100] {
            let (mut frames, mut parts) = (Frames::default(), bytes.to_vec());
            parts.chunks_mut(step).for_each(|part| frames.pass(part));
            assert_eq!(parts, whole, "in steps of {step}");
        }
        whole
    }

    fn changes(before: &[u8], after: &[u8]) -> Vec<(u8, u8)> {
        before.iter().zip(after).filter(|(before, after)| before != after).map(|(before, after)| (*before, *after)).collect()
    }

    #[test]
    fn what_is_too_deep_becomes_bytes() {
        for depth in [DEEPEST, DEEPEST + 1, 1_000, 20_000] {
            let fields =
                [named("deep", &nested(depth)), named("flat", b"S\0\0\0\x02hi"), named("deep too", &nested(depth))].concat();
            // The table of headers is the first level.
            let kind = if (depth - DEEPEST).is_multiple_of(2) { LIST } else { TABLE };
            let before = [frame(1, b"deliver"), header(&fields), frame(3, b"payload")].concat();
            assert_eq!(changes(&before, &passed(&before)), [(kind, BYTES); 2], "{depth} levels");
        }
    }

    #[test]
    fn what_is_not_so_deep_stays() {
        let fields = [
            named("deep", &nested(DEEPEST - 1)),
            named("", b"V"),
            named("x", b"x\0\0\0\x04AAFF"),
            named("all", b"t\x01"),
            named("b", b"b\xff"),
            named("s", b"s\0A"),
            named("i", b"I\0\0\0A"),
            named("D", b"D\x01\0\0\0F"),
            named("T", b"T\0\0\0\0\0\0\0A"),
            named("empty", b"A\0\0\0\0"),
            named("empty too", b"F\0\0\0\0"),
        ];
        let before = [header(&fields.concat()), frame(8, b""), header(b""), frame(2, &[0; 14])].concat();
        assert_eq!(changes(&before, &passed(&before)), []);
    }

    proptest! {
        /// Nothing but the type of what is too deep is ever changed, and nothing else is looked at.
        #[test]
        fn bytes_of_any_kind_pass(bytes: Vec<u8>, fields: Vec<u8>) {
            for before in [bytes, header(&fields), frame(3, &fields)] {
                let after = passed(&before);
                prop_assert!(changes(&before, &after).iter().all(|change| matches!(change, (LIST | TABLE, BYTES))));
            }
        }
    }
}

//! What comes from a broker.

use amq_protocol::frame::AMQPFrame;
use amq_protocol::frame::parsing::parse_frame;
use arbitrary::Arbitrary;
use mqguard_runtime::fuzzing;
use mqguard_runtime::{DeadLetter, HeaderValue, Headers, Message, Payload as _, Raw};

/// A frame with a message's properties, as bytes: what the client library makes of it is read, and published again.
pub fn content_header(payload: &[u8]) {
    let Ok(length) = u32::try_from(payload.len()) else { return };
    let mut frame = [&[2, 0, 1][..], &length.to_be_bytes(), payload, &[0xce]].concat();
    fuzzing::received(&mut frame);
    if let Ok((_, AMQPFrame::Header(_, header))) = parse_frame(&frame[..]) {
        message(&fuzzing::message(&header.properties, Vec::new()));
    }
}

/// A message with headers of our names, and of any other.
#[derive(Debug, Arbitrary)]
pub struct Foreign {
    headers: Vec<(Name, Value)>,
    frame_max: u16,
}

#[derive(Debug, Arbitrary)]
enum Name {
    Ours(u8),
    Other(String),
}

#[derive(Debug, Arbitrary)]
enum Value {
    Void,
    Bool(bool),
    I8(i8),
    U32(u32),
    I64(i64),
    F64(f64),
    Text(String),
    Time,
    Bytes(Vec<u8>),
    Long(u16),
    Timestamp(u64),
    List(Vec<Value>),
    Table(Vec<(Name, Value)>),
}

impl Foreign {
    pub fn try_it(self) {
        let message_of = Message { headers: headers(self.headers), ..Message::default() };
        message(&message_of);
        // As small as AMQP allows, at least.
        fuzzing::letter(&message_of, 4096 + usize::from(self.frame_max));
    }
}

fn headers(entries: Vec<(Name, Value)>) -> Headers {
    entries.into_iter().map(|(name, value)| (name.text(), value.value())).collect()
}

impl Name {
    fn text(self) -> String {
        match self {
            Self::Ours(n) => {
                let names = fuzzing::header_names();
                names.get(usize::from(n) % names.len()).copied().unwrap_or_default().to_owned()
            }
            Self::Other(name) => name.chars().take(60).collect(),
        }
    }
}

impl Value {
    fn value(self) -> HeaderValue {
        match self {
            Self::Void => HeaderValue::Void,
            Self::Bool(value) => HeaderValue::Bool(value),
            Self::I8(value) => HeaderValue::I8(value),
            Self::U32(value) => HeaderValue::U32(value),
            Self::I64(value) => HeaderValue::I64(value),
            Self::F64(value) => HeaderValue::F64(value),
            Self::Text(text) => text.into(),
            Self::Time => "2026-11-30T12:00:00Z".into(),
            Self::Bytes(bytes) => HeaderValue::Text(bytes.into()),
            Self::Long(length) => "é".repeat(usize::from(length)).into(),
            Self::Timestamp(seconds) => HeaderValue::Timestamp(seconds),
            Self::List(values) => HeaderValue::Array(values.into_iter().map(Self::value).collect()),
            Self::Table(entries) => HeaderValue::Table(headers(entries)),
        }
    }
}

/// All that is read from a message.
fn message(message: &Message) {
    fuzzing::progress(message);
    fuzzing::publish(message);
    if let Ok(letter) = DeadLetter::<Raw>::decode(message) {
        let words = (letter.reason().to_string(), letter.error(), letter.attempts().len(), letter.runs(), letter.generation());
        let times = (letter.first_failure(), letter.died());
        let places = (letter.consumer(), letter.queue(), letter.exchange(), letter.routing_key(), letter.host(), letter.cut());
        std::hint::black_box((words, times, places));
    }
}

//! Our messages to the client library's types and back, without loss.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, DecimalValue, FieldTable, ShortString};

use crate::broker::headers::{HeaderValue, Headers};
use crate::broker::message::{Message, Properties};

/// What AMQP keeps in a short string, as all names and properties are.
const MAX_SHORT: usize = 255;

/// A name or property as a short string; the error says why it is none.
pub(super) fn short(what: &str, text: &str) -> Result<ShortString, String> {
    ShortString::try_new(text).map_err(|_| format!("{what} has {} bytes, AMQP takes at most {MAX_SHORT}", text.len()))
}

/// The properties and headers as they are sent; the error says what cannot be sent.
pub(super) fn to_properties(message: &Message) -> Result<BasicProperties, String> {
    let Properties {
        message_id,
        correlation_id,
        content_type,
        content_encoding,
        kind,
        app_id,
        user_id,
        reply_to,
        timestamp,
        priority,
        delivery_mode,
        expiration,
    } = &message.properties;
    let mut properties = BasicProperties::default().with_delivery_mode(delivery_mode.unwrap_or(2));
    macro_rules! set {
        ($($value:ident => $with:ident),+ $(,)?) => {$(
            if let Some(value) = $value {
                properties = properties.$with(short(concat!("the property `", stringify!($value), "`"), value)?);
            }
        )+};
    }
    set!(message_id => with_message_id, correlation_id => with_correlation_id, content_type => with_content_type,
        content_encoding => with_content_encoding, kind => with_type, app_id => with_app_id, user_id => with_user_id,
        reply_to => with_reply_to, expiration => with_expiration);
    if let Some(timestamp) = *timestamp {
        properties = properties.with_timestamp(timestamp);
    }
    if let Some(priority) = *priority {
        properties = properties.with_priority(priority);
    }
    if !message.headers.is_empty() {
        properties = properties.with_headers(to_table(&message.headers)?);
    }
    Ok(properties)
}

fn to_table(headers: &Headers) -> Result<FieldTable, String> {
    let mut table = FieldTable::default();
    for (name, value) in headers {
        let key = short("the name of a header", name)?;
        table.insert(key, to_value(value).map_err(|problem| format!("the header `{name}` {problem}"))?);
    }
    Ok(table)
}

fn to_value(value: &HeaderValue) -> Result<AMQPValue, String> {
    Ok(match value {
        HeaderValue::Void => AMQPValue::Void,
        HeaderValue::Bool(value) => AMQPValue::Boolean(*value),
        HeaderValue::I8(value) => AMQPValue::ShortShortInt(*value),
        HeaderValue::U8(value) => AMQPValue::ShortShortUInt(*value),
        HeaderValue::I16(value) => AMQPValue::ShortInt(*value),
        HeaderValue::U16(value) => AMQPValue::ShortUInt(*value),
        HeaderValue::I32(value) => AMQPValue::LongInt(*value),
        HeaderValue::U32(value) => AMQPValue::LongUInt(*value),
        HeaderValue::I64(value) => AMQPValue::LongLongInt(*value),
        // Erlang has no such floats: RabbitMQ would break the connection over them.
        HeaderValue::F32(value) if !value.is_finite() => return Err(format!("is {value}, which RabbitMQ cannot carry")),
        HeaderValue::F64(value) if !value.is_finite() => return Err(format!("is {value}, which RabbitMQ cannot carry")),
        HeaderValue::F32(value) => AMQPValue::Float(*value),
        HeaderValue::F64(value) => AMQPValue::Double(*value),
        HeaderValue::Decimal { scale, value } => AMQPValue::DecimalValue(DecimalValue { scale: *scale, value: *value }),
        HeaderValue::Text(text) => AMQPValue::LongString(text.to_vec().into()),
        HeaderValue::Bytes(bytes) => AMQPValue::ByteArray(bytes.to_vec().into()),
        HeaderValue::Timestamp(seconds) => AMQPValue::Timestamp(*seconds),
        HeaderValue::Array(values) => AMQPValue::FieldArray(values.iter().map(to_value).collect::<Result<Vec<_>, _>>()?.into()),
        HeaderValue::Table(table) => AMQPValue::FieldTable(to_table(table)?),
    })
}

/// A message as it was received.
pub(super) fn to_message(properties: &BasicProperties, body: Vec<u8>) -> Message {
    let text = |text: &Option<ShortString>| text.as_ref().map(|text| text.as_str().to_owned());
    let ours = Properties {
        message_id: text(properties.message_id()),
        correlation_id: text(properties.correlation_id()),
        content_type: text(properties.content_type()),
        content_encoding: text(properties.content_encoding()),
        kind: text(properties.kind()),
        app_id: text(properties.app_id()),
        user_id: text(properties.user_id()),
        reply_to: text(properties.reply_to()),
        timestamp: *properties.timestamp(),
        priority: *properties.priority(),
        delivery_mode: *properties.delivery_mode(),
        expiration: text(properties.expiration()),
    };
    Message {
        body: Bytes::from(body),
        properties: ours,
        headers: properties.headers().as_ref().map(from_table).unwrap_or_default(),
    }
}

fn from_table(table: &FieldTable) -> Headers {
    table.into_iter().map(|(name, value)| (name.as_str().to_owned(), from_value(value))).collect()
}

fn from_value(value: &AMQPValue) -> HeaderValue {
    match value {
        AMQPValue::Boolean(value) => HeaderValue::Bool(*value),
        AMQPValue::ShortShortInt(value) => HeaderValue::I8(*value),
        AMQPValue::ShortShortUInt(value) => HeaderValue::U8(*value),
        AMQPValue::ShortInt(value) => HeaderValue::I16(*value),
        AMQPValue::ShortUInt(value) => HeaderValue::U16(*value),
        AMQPValue::LongInt(value) => HeaderValue::I32(*value),
        AMQPValue::LongUInt(value) => HeaderValue::U32(*value),
        AMQPValue::LongLongInt(value) => HeaderValue::I64(*value),
        AMQPValue::Float(value) => HeaderValue::F32(*value),
        AMQPValue::Double(value) => HeaderValue::F64(*value),
        AMQPValue::DecimalValue(decimal) => HeaderValue::Decimal { scale: decimal.scale, value: decimal.value },
        AMQPValue::ShortString(text) => HeaderValue::Text(Bytes::copy_from_slice(text.as_str().as_bytes())),
        AMQPValue::LongString(text) => HeaderValue::Text(Bytes::copy_from_slice(text.as_bytes())),
        AMQPValue::FieldArray(values) => HeaderValue::Array(values.as_slice().iter().map(from_value).collect()),
        AMQPValue::Timestamp(seconds) => HeaderValue::Timestamp(*seconds),
        AMQPValue::FieldTable(table) => HeaderValue::Table(from_table(table)),
        AMQPValue::ByteArray(bytes) => HeaderValue::Bytes(Bytes::copy_from_slice(bytes.as_slice())),
        AMQPValue::Void => HeaderValue::Void,
    }
}

//! What is published is what is delivered.

use std::time::Duration;

use mqguard::broker::{Address, Delivery, HeaderValue, Headers, Message, Settlement};

use crate::harness::{BOTH, Bench, dead_letters_to, message};

/// Every property, and a header of every type.
fn everything() -> Message {
    let mut nested = Headers::new();
    nested.insert("deep", HeaderValue::Table(Headers::from_iter([("er".to_owned(), HeaderValue::Array(vec![1_i32.into()]))])));
    nested.insert("", "an empty name");
    let mut headers = Headers::new();
    let values = [
        ("void", HeaderValue::Void),
        ("true", true.into()),
        ("false", false.into()),
        ("i8", i8::MIN.into()),
        ("u8", u8::MAX.into()),
        ("i16", i16::MIN.into()),
        ("u16", u16::MAX.into()),
        ("i32", i32::MIN.into()),
        ("u32", u32::MAX.into()),
        ("i64", i64::MIN.into()),
        ("f32", 1.5_f32.into()),
        ("f64", (-0.1_f64).into()),
        ("decimal", HeaderValue::Decimal { scale: 2, value: 12345 }),
        ("text", "grüße".into()),
        ("empty text", "".into()),
        ("not utf-8", HeaderValue::Text(vec![0, 0x53, 0x74, 0xc1, 0xff].into())),
        ("bytes", HeaderValue::Bytes(vec![0, 255, 128].into())),
        ("timestamp", HeaderValue::Timestamp(1_700_000_000)),
        ("array", HeaderValue::Array(vec!["a".into(), 1_i64.into(), HeaderValue::Void, HeaderValue::Array(vec![])])),
        ("table", HeaderValue::Table(nested)),
        ("empty table", HeaderValue::Table(Headers::new())),
    ];
    values.into_iter().for_each(|(name, value)| headers.insert(name, value));
    let mut message = message("body");
    message.headers = headers;
    let properties = &mut message.properties;
    properties.message_id = Some("m-1".into());
    properties.correlation_id = Some("c-1".into());
    properties.content_type = Some("application/json".into());
    properties.content_encoding = Some("utf-8".into());
    properties.kind = Some("order.placed".into());
    properties.app_id = Some("shop".into());
    properties.user_id = Some("guest".into());
    properties.reply_to = Some("answers".into());
    properties.timestamp = Some(1_700_000_000);
    properties.priority = Some(3);
    properties.delivery_mode = Some(2);
    message
}

/// Headers other than the broker's own.
fn own(headers: &Headers) -> Headers {
    let mut own = headers.clone();
    own.retain(|name, _| !name.starts_with("x-"));
    own
}

#[track_caller]
fn same(delivery: &Delivery, sent: &Message) {
    assert_eq!(delivery.message.properties, sent.properties);
    let got = own(&delivery.message.headers);
    for (name, value) in &sent.headers {
        assert_eq!(got.get(name), Some(value), "the header `{name}`");
    }
    assert_eq!(got, sent.headers);
    assert!(delivery.message.body == sent.body, "the body differs");
}

pub async fn properties_and_headers_of_every_type_arrive(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        let sent = everything();
        bench.publish(&Address::queue(&queue), &sent).await;
        let mut consumer = bench.consume(&queue, 1).await;
        let delivery = consumer.next().await;
        same(&delivery, &sent);
        // And again when it comes again.
        delivery.receipt.settle(Settlement::Return);
        same(&consumer.next().await, &sent);
    }
}

pub async fn properties_and_headers_survive_a_dead_letter_hop(bench: &Bench) {
    for queue_type in BOTH {
        let target = bench.queue(queue_type).await;
        let mut hold = bench.plain(queue_type);
        hold.message_ttl = Some(Duration::from_millis(20));
        hold.dead_letters = dead_letters_to(&target);
        bench.declare([hold.clone()]).await;
        let sent = everything();
        bench.publish(&Address::queue(&hold.name), &sent).await;
        same(&bench.consume(&target, 1).await.next().await, &sent);
    }
}

pub async fn a_message_with_nothing_in_it_arrives(bench: &Bench) {
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        bench.publish(&Address::queue(&queue), &Message::default()).await;
        let mut expected = Message::default();
        expected.properties.delivery_mode = Some(2);
        same(&bench.consume(&queue, 1).await.next().await, &expected);
    }
}

pub async fn a_message_is_kept_on_disk_unless_it_says_otherwise(bench: &Bench) {
    let queue = bench.queue(BOTH[1]).await;
    let mut consumer = bench.consume(&queue, 10).await;
    for (asked, got) in [(None, 2), (Some(2), 2), (Some(1), 1)] {
        let mut message = message("a");
        message.properties.delivery_mode = asked;
        bench.publish(&Address::queue(&queue), &message).await;
        let delivery = consumer.next().await;
        assert_eq!(delivery.message.properties.delivery_mode, Some(got));
        delivery.receipt.settle(Settlement::Ack);
    }
}

pub async fn bodies_are_exact(bench: &Bench) {
    let bodies = [
        Vec::new(),
        vec![0],
        vec![0xff, 0xfe, 0, 0xc3, 0x28],
        b"{\"n\": 1}\r\n".to_vec(),
        // One frame, one byte more, and many.
        vec![7; 131_064],
        vec![8; 131_065],
        (0..1_048_576_u32).map(|n| (n % 251) as u8).collect(),
    ];
    for queue_type in BOTH {
        let queue = bench.queue(queue_type).await;
        let mut consumer = bench.consume(&queue, 10).await;
        for body in &bodies {
            let message = Message { body: body.clone().into(), ..Message::default() };
            bench.publish(&Address::queue(&queue), &message).await;
            let delivery = consumer.next().await;
            assert!(delivery.message.body == *body, "{} bytes differ", body.len());
            delivery.receipt.settle(Settlement::Ack);
        }
    }
}

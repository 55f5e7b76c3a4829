//! RabbitMQ that is not there. Needs no server.

use std::time::{Duration, Instant};

use mqguard::broker::{Address, Broker, BrokerError, PublishError, RabbitMq};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::harness::{message, within};

#[tokio::test]
async fn nobody_listens() {
    let broker = RabbitMq::new("amqp://127.0.0.1:1,localhost:2").unwrap();
    let Err(BrokerError::Unavailable(reason)) = within(broker.ping()).await else { panic!("it answers") };
    assert!(reason.contains("127.0.0.1:1: ") && reason.contains("localhost:2: "), "{reason}");
    let address = Address::queue("q");
    match within(broker.publish(&address, &message("a"))).await {
        Err(PublishError::Unavailable { address: to, .. }) => assert_eq!(to, address),
        other => panic!("{other:?}"),
    }
    assert_eq!(broker.frame_max(), 131_072);
    within(broker.close()).await;
}

/// Many wait for one attempt, and it leaves nothing behind.
#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://{}?connection_timeout=400", listener.local_addr().unwrap());
    let broker = RabbitMq::new(&url).unwrap();
    let started = Instant::now();
    let mut pings = JoinSet::new();
    for _ in 0..20 {
        let broker = broker.clone();
        pings.spawn(async move { broker.ping().await });
    }
    let (mut connection, _) = within(listener.accept()).await.unwrap();
    for result in within(pings.join_all()).await {
        assert!(
            matches!(&result, Err(BrokerError::Unavailable(reason)) if reason.contains("no answer within 400ms")),
            "{result:?}"
        );
    }
    assert!(started.elapsed() < Duration::from_secs(2), "each waits for itself: {:?}", started.elapsed());
    // Nobody else came, and who came has hung up.
    let mut received = Vec::new();
    within(connection.read_to_end(&mut received)).await.unwrap();
    assert_eq!(received, b"AMQP\0\0\x09\x01");
    assert!(tokio::time::timeout(Duration::from_millis(200), listener.accept()).await.is_err());
}

/// What is no RabbitMQ does not make anything hang either.
#[tokio::test]
async fn a_server_of_another_kind_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let broker = RabbitMq::new(&format!("amqp://{}?connection_timeout=2000", listener.local_addr().unwrap())).unwrap();
    let server = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        // Hanging up on what was not read yet would reset the connection, and what is said would not arrive.
        connection.read_exact(&mut [0; 8]).await.unwrap();
        connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        connection
    };
    let (result, _connection) = tokio::join!(within(broker.ping()), server);
    assert!(matches!(&result, Err(BrokerError::Unavailable(reason)) if reason.contains("is no AMQP 0-9-1")), "{result:?}");
}

#[tokio::test]
async fn a_closed_broker_stays_closed() {
    let broker = RabbitMq::new("amqp://127.0.0.1:1").unwrap();
    within(broker.close()).await;
    assert_eq!(within(broker.ping()).await, Err(BrokerError::Unavailable("this broker was closed".into())));
}

#[test]
fn the_password_is_not_shown() {
    let broker = RabbitMq::new("amqp://user:s3cret@h1,h2/shop").unwrap();
    assert_eq!(format!("{broker:?}"), "RabbitMq(amqp://user:***@h1:5672,h2:5672/shop)");
    let error = RabbitMq::new("amqp://user:s3cret@h1:port").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}

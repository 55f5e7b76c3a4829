//! The smallest consumer: `cargo run --example hello`, then Ctrl-C.

#![allow(clippy::print_stdout, reason = "it says hello")]

use mqguard::{Guard, RetryableError, consumer};

#[derive(Debug, thiserror::Error, RetryableError)]
enum GreetError {
    #[error("{0} does not answer")]
    #[retryable]
    NoAnswer(String),
}

#[consumer(queue = "hello", retry(max = 2, delay = "1s"), dlq = "dlq.hello", idempotent = "memory")]
async fn greet(name: String) -> Result<(), GreetError> {
    if name.is_empty() {
        return Err(GreetError::NoAnswer(name));
    }
    println!("hello, {name}");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let guard = Guard::from_env()?.consumer::<greet>();
    guard.declare().await?;
    guard.publisher().json(&"world")?.to_queue("hello").await?;
    Ok(guard.run().await?)
}

#[path = "../shop.rs"]
mod shop;

use mqguard::sqlx::Postgres;
use mqguard::{Tx, consumer};
use shop::{Order, OrderError, register};

#[consumer(queue = "order.process", idempotent(store = "postgres", transactional = true))]
async fn process_order(order: Order, _tx: Tx<'_, Postgres>) -> Result<(), OrderError> {
    if order.order_id == 0 { Err(OrderError) } else { Ok(()) }
}

fn main() {
    register::<process_order>();
}

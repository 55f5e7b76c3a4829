#![deny(warnings, clippy::all)]

use super::shop;

use mqguard::{Attempt, Context, Effects, Headers, Publisher, Raw, State, consumer};
use shop::{Db, register};

#[consumer(queue = "q")]
#[allow(clippy::too_many_arguments)]
async fn eleven(
    Raw(_body): Raw,
    State(_a): State<Db>,
    State(_b): State<u8>,
    State(_c): State<Vec<(u8, String)>>,
    State(_d): State<std::sync::Arc<dyn Fn(u8) -> u8 + Send + Sync>>,
    _cx: Context,
    _headers: Headers,
    _attempt: Attempt,
    _effects: Effects,
    _publisher: Publisher,
    _: State<[u8; 4]>,
) {
}

pub(crate) fn main() {
    register::<eleven>();
}

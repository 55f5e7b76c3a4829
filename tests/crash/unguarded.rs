//! `on_store_down = "run"`: whatever goes wrong, no message is lost and none is kept. Duplicates are its price.

use mqguard::testing::CrashTest;
use mqguard::{Context, Guard, State, consumer};

use crate::{Act, Bank, Trouble, pairs, send};

#[consumer(
    queue = "charge",
    retry(max = 3, delay = "5s", factor = 2),
    dlq = "dlq.charge",
    idempotent(store = "redis", lease = "10s", on_store_down = "run")
)]
async fn eager(act: Act, cx: Context, bank: State<Bank>) -> Result<(), Trouble> {
    bank.play(act, &cx).await
}

#[tokio::test(start_paused = true)]
async fn no_message_is_lost_for_a_store_that_is_away() {
    let bank = Bank::default();
    for act in [Act::Succeed, Act::Last, Act::FailTwice, Act::Fail, Act::Refuse, Act::RefuseOnce] {
        // Without a duplicate where a lost connection would cost a run of each copy.
        let copies = if matches!(act, Act::Fail | Act::FailTwice) { 1 } else { 2 };
        let messages = vec![("m-1", act); copies];
        let report = CrashTest::new(|guard: Guard| guard.consumer::<eager>().state(bank.clone()))
            .publish(|publisher| send(publisher, "charge", &messages))
            .reset(|| bank.clear())
            .most_pairs(pairs(400))
            .run()
            .await;
        println!("{act:?}: {report}");
        report.assert_clean();
        assert!(report.pairs >= 300, "{act:?}: {report}");
    }
}

//! Invocations that end early, and the leases of their queues.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use entities::webhooks::{DelivererFailure, DeliveryRequest, StoredQueue, TestOutcome, TestRequest, WebhookDeliverer};
use fts_indexer::Indexer;
use futures::future::BoxFuture;
use key_schema::Shard;
use runtime::clock::{Moment, now_ms, sleep};

use crate::receiver::Behaviour;
use crate::world::{World, simulated};

const URL: &str = "https://receiver.test/hook";

/// Returns whether the only queue is due.
async fn is_due(world: &World) -> bool {
    let mut queues = Vec::new();
    for shard in Shard::all() {
        let page = StoredQueue::page(&world.site.table, shard, None, 10).await.unwrap().unwrap();
        queues.extend(page.items.iter().map(|item| StoredQueue::of(item).unwrap()));
    }
    let [queue] = queues.try_into().unwrap();
    queue.is_due(now_ms())
}

/// Queues two events for a receiver that does not respond, and waits until the first attempt is in
/// flight.
async fn hanging(world: &World) {
    let webhook = world.webhook(URL).await;
    world.receivers.set(URL, Behaviour::Hangs);
    for body in ["1", "2"] {
        world.event("m", body, &[webhook.id]).await;
    }
    world.start().await;
    while world.receivers.bodies(URL).is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!is_due(world).await);
}

#[tokio::test]
async fn a_process_that_ends_releases_its_queues() {
    simulated(async {
        let world = World::new().await;
        hanging(&world).await;
        world.shut_down(Duration::from_millis(10)).await;
        assert!(is_due(&world).await, "the next process delivers at once");
        world.tick().await;
        world.wait_until_idle().await;
        assert_eq!(world.receivers.bodies(URL), ["1"], "this one delivers nothing more");
    })
    .await;
}

#[tokio::test]
async fn a_process_that_ends_completes_attempts_in_flight() {
    simulated(async {
        let world = World::new().await;
        hanging(&world).await;
        let (accepted, ()) = tokio::join!(world.shut_down(Duration::from_mins(1)), async {
            world.receivers.set(URL, Behaviour::Accepts);
            world.receivers.end_hanging.notify_waiters();
        });
        let () = accepted;
        assert_eq!(world.receivers.bodies(URL), ["1"]);
    })
    .await;
}

/// An invocation that takes too long ends before its lease on the queue expires, and the queue
/// remains leased until then.
#[tokio::test]
async fn an_invocation_ends_within_its_time() {
    simulated(async {
        let mut world = World::limited_to(Duration::from_secs(2)).await;
        hanging(&world).await;
        world.wait_until_idle().await;
        assert!(!is_due(&world).await);
        // The limit is real time, in which a busy machine may not complete the later invocations.
        world.lift_limit();
        world.receivers.set(URL, Behaviour::Accepts);
        world.minutes(4).await;
        assert_eq!(world.receivers.bodies(URL), ["1", "1", "2"]);
        assert_eq!(world.pending().await, 0);
    })
    .await;
}

/// A deliverer whose invocations take 25 seconds each, and deliver nothing.
#[derive(Debug, Default)]
struct SlowDeliverer(Mutex<BTreeSet<String>>);

impl WebhookDeliverer for SlowDeliverer {
    fn deliver(&self, request: DeliveryRequest) -> BoxFuture<'_, Result<(), DelivererFailure>> {
        Box::pin(async move {
            sleep(Duration::from_secs(25)).await;
            self.0.lock().unwrap().insert(request.webhook);
            Ok(())
        })
    }

    fn test(&self, _: TestRequest) -> BoxFuture<'_, Result<TestOutcome, DelivererFailure>> {
        Box::pin(async { Err(DelivererFailure("not supported".to_owned())) })
    }
}

/// A tick stops invoking deliveries when its time is used up. Later ticks begin with other shards,
/// so that each queue is reached by one of them.
#[tokio::test]
async fn invocations_that_take_long_do_not_hold_up_a_tick() {
    simulated(async {
        let world = World::new().await;
        world.receivers.set(URL, Behaviour::Responds(503, None));
        let mut all = BTreeSet::new();
        for number in 0..16 {
            let webhook = world.webhook(URL).await;
            world.event(&format!("m{number}"), "x", &[webhook.id]).await;
            all.insert(webhook.id.to_string());
        }
        world.index().await;
        sleep(Duration::from_mins(2)).await;
        let slow = Arc::new(SlowDeliverer::default());
        let indexer = Indexer::new(world.site.table.clone()).with_clock(now_ms).with_webhooks(slow.clone());
        for tick in 1..=4 {
            let begin = Moment::now();
            indexer.tick().await.unwrap();
            assert!(begin.age() < Duration::from_secs(90), "{:?}", begin.age());
            assert!(tick > 1 || slow.0.lock().unwrap().len() < all.len());
            sleep(Duration::from_mins(3).saturating_sub(begin.age())).await;
        }
        assert_eq!(*slow.0.lock().unwrap(), all);
    })
    .await;
}

//! Tests that events are delivered at least once and in order, wherever the indexer or the function
//! is interrupted.

use std::collections::HashSet;

use entities::webhooks::DeliveryRequest;
use secrets::SecretKeys;

use crate::receiver::Behaviour;
use crate::world::{World, simulated};

const URL: &str = "https://receiver.test/hook";
const MODELS: [&str; 2] = ["a", "b"];

/// Checks that all events of each model have arrived. Repeated deliveries are allowed, but the
/// first arrivals have to be in order.
fn check(bodies: &[String], context: &str) {
    for model in MODELS {
        let mut seen = HashSet::new();
        let first: Vec<_> = bodies.iter().filter(|body| body.starts_with(model) && seen.insert(*body)).collect();
        let expected: Vec<_> = (0..3).map(|number| format!("{model}{number}")).collect();
        assert_eq!(first, expected.iter().collect::<Vec<_>>(), "{context}");
    }
}

async fn events(world: &World) {
    let webhook = world.webhook(URL).await;
    for number in 0..3 {
        for model in MODELS {
            world.event(model, &format!("{model}{number}"), &[webhook.id]).await;
        }
    }
}

#[tokio::test]
async fn each_event_arrives_once_and_leaves_nothing_behind() {
    simulated(async {
        let world = World::new().await;
        events(&world).await;
        let others = world.webhook("https://other.test/").await;
        world.event("c", &"x".repeat(1_000_000), &[others.id]).await;
        world.minute().await;
        let bodies = world.receivers.bodies(URL);
        check(&bodies, "once");
        assert_eq!(bodies.len(), 6);
        assert_eq!(world.receivers.bodies("https://other.test/"), ["x".repeat(1_000_000)]);
        assert_eq!(world.pending().await, 0);
        world.minutes(3).await;
        assert_eq!(world.receivers.bodies(URL).len(), 6);
        let mut ids: Vec<_> =
            world.receivers.received(URL).into_iter().map(|one| one.headers["x-mlflow-delivery-id"].clone()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 6);
    })
    .await;
}

/// Cuts the indexer or the function off from the table at its `n`th request, and checks that all
/// events arrive nevertheless. Does so for every `n` until fewer than `n` requests are made.
async fn stopped_at_each_request(is_indexer: bool) {
    for n in 1.. {
        let world = World::with(
            |site| {
                let faulty = site.impatient();
                if is_indexer { (faulty, site.table.clone()) } else { (site.table.clone(), faulty) }
            },
            SecretKeys::None,
        )
        .await;
        events(&world).await;
        world.site.faults.reset_calls();
        world.site.faults.cut_off_at(n);
        world.minute().await;
        world.site.faults.work_again();
        let calls: u64 = world.site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        world.minutes(8).await;
        check(&world.receivers.bodies(URL), &format!("stopped at {n}, indexer: {is_indexer}"));
        assert_eq!(world.pending().await, 0, "stopped at {n}, indexer: {is_indexer}");
        assert!(world.dead().await.is_empty());
        if calls < n {
            assert!(n > 10, "nothing was stopped");
            return;
        }
    }
}

#[tokio::test]
async fn the_function_may_stop_at_each_request() {
    simulated(Box::pin(stopped_at_each_request(false))).await;
}

#[tokio::test]
async fn the_indexer_may_stop_at_each_request() {
    simulated(Box::pin(stopped_at_each_request(true))).await;
}

#[tokio::test]
async fn two_functions_do_not_deliver_from_the_same_queue() {
    simulated(async {
        let world = World::new().await;
        events(&world).await;
        world.receivers.set(URL, Behaviour::Responds(503, None));
        world.minute().await;
        world.receivers.set(URL, Behaviour::Accepts);
        let failed = world.receivers.bodies(URL).len();
        runtime::clock::sleep(std::time::Duration::from_mins(3)).await;
        let webhook = entities::webhooks::StoredWebhook::of(
            &world.site.table.query(table::Query::of(key_schema::rows::Webhook::all(&"default".into()))).await.unwrap()
                [0],
        )
        .unwrap();
        let request = DeliveryRequest {
            workspace: "default".to_owned(),
            webhook: webhook.id.to_string(),
            models: MODELS.map(str::to_owned).to_vec(),
        };
        let (one, two) = tokio::join!(world.deliverer.deliver(&request), world.deliverer.deliver(&request));
        one.and(two).unwrap();
        let bodies = world.receivers.bodies(URL)[failed..].to_vec();
        assert_eq!(bodies.len(), 6);
        check(&bodies, "two at once");
        assert_eq!(world.pending().await, 0);
    })
    .await;
}

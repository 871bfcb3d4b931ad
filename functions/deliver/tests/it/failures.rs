//! Receivers that fail, and webhooks that change while events are pending.

use std::time::Duration;

use entities::webhooks::{QueueId, StoredDelivery, StoredQueue, StoredWebhook, TestRequest};
use mlflow_api::Workspace;
use mlflow_api::webhooks::WebhookStatus;
use runtime::clock::now_ms;
use secrets::{KeyFile, Secret, SecretContext, SecretKeys};
use table::Condition;

use crate::receiver::Behaviour;
use crate::world::{World, simulated};

const URL: &str = "https://receiver.test/hook";
const DEAD: &str = "https://dead.test/";

fn minutes_since(begin: i64, world: &World, url: &str) -> Vec<i64> {
    world.receivers.received(url).iter().map(|one| (one.at - begin) / 60_000).collect()
}

#[tokio::test]
async fn a_receiver_that_was_down_for_an_hour_gets_everything_in_order() {
    simulated(async {
        let world = World::new().await;
        let webhook = world.webhook(URL).await;
        for behaviour in [Behaviour::Responds(503, None), Behaviour::IsSilent] {
            let before = world.receivers.bodies(URL).len();
            world.receivers.set(URL, behaviour);
            for number in 0..60 {
                world.event("m", &format!("{number:02}"), &[webhook.id]).await;
                world.minute().await;
            }
            let failed = world.receivers.bodies(URL)[before..].to_vec();
            assert!(failed.iter().all(|body| body == "00") && (6..10).contains(&failed.len()), "{failed:?}");
            world.receivers.set(URL, Behaviour::Accepts);
            world.minutes(65).await;
            let delivered = world.receivers.bodies(URL)[before + failed.len()..].to_vec();
            assert_eq!(delivered, (0..60).map(|number| format!("{number:02}")).collect::<Vec<_>>());
            assert_eq!(world.pending().await, 0);
        }
    })
    .await;
}

#[tokio::test]
async fn a_delivery_that_fails_for_a_day_is_dead_and_can_be_repeated() {
    simulated(async {
        let world = World::new().await;
        let webhook = world.webhook(URL).await;
        world.receivers.set(URL, Behaviour::Responds(500, None));
        world.event("m", "first", &[webhook.id]).await;
        let begin = now_ms();
        world.minutes(26 * 60).await;
        let times = minutes_since(begin, &world, URL);
        assert_eq!(times[..4], [0, 1, 3, 7]);
        let dead = world.dead().await;
        assert_eq!(dead.len(), 1);
        assert_eq!((dead[0].answer.as_deref(), dead[0].attempts as usize), (Some("status 500"), times.len()));
        assert_eq!(world.pending().await, 0);
        let queue = QueueId { workspace: Workspace::default(), webhook: webhook.id, model: dead[0].model.clone() };
        StoredDelivery::add_again(&world.site.table, &queue, dead[0].event).await.unwrap();
        StoredQueue::announce(&world.site.table, &queue).await.unwrap();
        world.receivers.set(URL, Behaviour::Accepts);
        let before = world.receivers.received(URL);
        world.minutes(2).await;
        let after = world.receivers.received(URL);
        assert_eq!(after.len(), before.len() + 1);
        let header = |name| (&before[0].headers[name], &after[after.len() - 1].headers[name]);
        let (id, same) = header("x-mlflow-delivery-id");
        assert_eq!(id, same);
        let (timestamp, fresh) = header("x-mlflow-timestamp");
        assert_ne!(timestamp, fresh);
    })
    .await;
}

#[tokio::test]
async fn other_responses_are_final_and_do_not_hold_up_later_events() {
    simulated(async {
        let world = World::new().await;
        let webhook = world.webhook(URL).await;
        for status in [301, 307, 400, 410] {
            world.receivers.set(URL, Behaviour::Responds(status, Some(5)));
            world.event("m", &status.to_string(), &[webhook.id]).await;
            world.minute().await;
        }
        world.minutes(5).await;
        assert_eq!(world.receivers.bodies(URL), ["301", "307", "400", "410"]);
        assert_eq!((world.dead().await.len(), world.pending().await), (4, 0));
    })
    .await;
}

#[tokio::test]
async fn a_receiver_can_ask_for_a_delay_of_up_to_an_hour() {
    simulated(async {
        let world = World::new().await;
        let webhook = world.webhook(URL).await;
        world.receivers.set(URL, Behaviour::Responds(429, Some(86_400)));
        world.event("m", "x", &[webhook.id]).await;
        let begin = now_ms();
        world.minutes(121).await;
        assert_eq!(minutes_since(begin, &world, URL), [0, 60, 120]);
    })
    .await;
}

#[tokio::test]
async fn a_webhook_that_no_longer_subscribes_gets_nothing() {
    let changes: [fn(StoredWebhook) -> Option<StoredWebhook>; 3] = [
        |webhook| Some(StoredWebhook { status: WebhookStatus::Disabled, ..webhook }),
        |webhook| Some(StoredWebhook { events: vec![mlflow_api::webhooks::WebhookEvent::PromptCreated], ..webhook }),
        |_| None,
    ];
    for change in changes {
        simulated(async {
            let world = World::new().await;
            let webhook = world.webhook(URL).await;
            world.receivers.set(URL, Behaviour::Responds(503, None));
            world.event("m", "1", &[webhook.id]).await;
            world.event("m", "2", &[webhook.id]).await;
            world.index().await;
            runtime::clock::sleep(Duration::from_millis(1)).await;
            world.receivers.set(URL, Behaviour::Accepts);
            let key = StoredWebhook::key(&Workspace::default(), webhook.id);
            if let Some(other) = change(webhook) {
                world.put(&other).await;
            } else {
                world.site.table.delete(&key, &Condition::Always).await.unwrap();
            }
            let before = world.receivers.bodies(URL);
            world.minutes(5).await;
            assert_eq!(world.receivers.bodies(URL), before);
            assert!(before.iter().all(|body| body == "1"));
            assert_eq!((world.pending().await, world.dead().await.len()), (0, 0));
        })
        .await;
    }
}

#[tokio::test]
async fn a_flood_to_a_dead_receiver_does_not_delay_others() {
    simulated(async {
        let world = World::new().await;
        let (dead, live) = (world.webhook(DEAD).await, world.webhook(URL).await);
        world.receivers.set(DEAD, Behaviour::Hangs);
        for model in 0..1_000 {
            world.event(&format!("m{model}"), "flood", &[dead.id]).await;
        }
        world.start().await;
        for round in 0..3 {
            // The attempts to reach the hanging receiver do not end before the live receiver has
            // its events.
            let begin = now_ms();
            world.event("live", &round.to_string(), &[live.id]).await;
            world.start().await;
            while world.receivers.received(URL).len() <= round || world.receivers.received(DEAD).is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(world.receivers.received(URL)[round].body, round.to_string());
            assert!(world.receivers.received(URL)[round].at - begin < 60_000);
            world.end_hanging().await;
            runtime::clock::sleep(Duration::from_mins(1)).await;
            world.tick().await;
        }
        world.end_hanging().await;
        // In each round, up to four invocations make up to ten concurrent attempts each, and then
        // stop.
        let attempts = world.receivers.received(DEAD).len();
        assert!((10..=4 * 40).contains(&attempts), "{attempts}");
    })
    .await;
}

#[tokio::test]
async fn nothing_is_sent_unsigned_if_the_key_is_lost() {
    simulated(async {
        let directory = tempfile::tempdir().unwrap();
        let key = |name: &str| KeyFile::create(&directory.path().join(name)).unwrap();
        let first = SecretKeys::File(key("first"));
        let keys = [SecretKeys::None, SecretKeys::File(key("second"))];
        for lost in keys {
            let world = World::with(|site| (site.table.clone(), site.table.clone()), lost).await;
            let webhook = signed(&world, &first).await;
            world.event("m", "x", &[webhook.id]).await;
            world.minutes(3).await;
            let test = TestRequest {
                workspace: "default".to_owned(),
                webhook: webhook.id.to_string(),
                body: "test".to_owned(),
            };
            let outcome = world.deliverer.test(&test).await.unwrap();
            assert!(outcome.status.is_none() && outcome.error.is_some(), "{outcome:?}");
            assert!(world.receivers.received(URL).is_empty());
            assert_eq!(world.pending().await, 2);
        }
    })
    .await;
}

async fn signed(world: &World, keys: &SecretKeys) -> StoredWebhook {
    let webhook = world.webhook(URL).await;
    let owner = webhook.id.to_string();
    let context = SecretContext { purpose: "webhook", workspace: "default", owner: &owner };
    let sealed = keys.seal(&Secret::from("s3cret".to_owned()), &context).await.unwrap();
    let webhook = StoredWebhook { secret: Some(sealed.into_bytes()), ..webhook };
    world.put(&webhook).await;
    webhook
}

#[tokio::test]
async fn deliveries_are_signed_and_tests_show_the_beginning_of_the_response() {
    simulated(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let seals = SecretKeys::File(KeyFile::create(&path).unwrap());
        let opens = SecretKeys::File(KeyFile::read(&path).unwrap());
        let world = World::with(|site| (site.table.clone(), site.table.clone()), opens).await;
        let webhook = signed(&world, &seals).await;
        world.event("m", "x", &[webhook.id]).await;
        world.minute().await;
        let received = world.receivers.received(URL);
        assert!(received[0].headers["x-mlflow-signature"].starts_with("v1,"));
        assert_eq!(received[0].headers["content-type"], "application/json");
        let test =
            TestRequest { workspace: "default".to_owned(), webhook: webhook.id.to_string(), body: "test".to_owned() };
        let outcome = world.deliverer.test(&test).await.unwrap();
        assert_eq!((outcome.status, outcome.error), (Some(200), None));
        assert_eq!(outcome.body.unwrap().chars().count(), 4_096);
        let unknown = TestRequest { webhook: webhook.id.to_string().replace('0', "1"), ..test };
        assert!(world.deliverer.test(&unknown).await.unwrap().error.is_some());
    })
    .await;
}

//! Delivery if rows cannot be read, or were written by a later version.

use entities::attributes::{EVENT as EVENT_ID, EVENTS, NAME, URL as WEBHOOK_URL};
use entities::webhooks::{StoredDelivery, StoredWebhook, WorkspaceSubscriptions};
use key_schema::Key;
use mlflow_api::Workspace;
use table::{Condition, Item, bytes_set, text};

use crate::receiver::Behaviour;
use crate::world::{World, simulated};

const URL: &str = "https://receiver.test/hook";

/// Changes the only row that `is_row` selects.
async fn change(world: &World, is_row: impl Fn(&Key) -> bool, changed: impl FnOnce(Item) -> Item) {
    let keys = world.site.items().await.into_iter().map(|item| test_site::key_of(&item));
    let [key] = keys.filter(is_row).collect::<Vec<_>>().try_into().unwrap();
    let item = world.site.table.get(&key).await.unwrap().unwrap();
    world.site.table.put(changed(item), &Condition::Always).await.unwrap();
}

fn without(mut item: Item, attribute: &str) -> Item {
    item.0.remove(attribute);
    item
}

fn is_delivery(key: &Key) -> bool {
    key.pk.starts_with("HOOK#TO#")
}

/// Queues the first event of a model, and makes its first attempt fail, so that the delivery
/// remains pending.
async fn with_pending_event(world: &World) -> StoredWebhook {
    let webhook = world.webhook(URL).await;
    world.receivers.set(URL, Behaviour::Responds(503, None));
    world.event("m", "first", &[webhook.id]).await;
    world.index().await;
    world.receivers.set(URL, Behaviour::Accepts);
    webhook
}

#[tokio::test]
async fn a_delivery_that_cannot_be_read_is_skipped() {
    simulated(async {
        let world = World::new().await;
        let webhook = with_pending_event(&world).await;
        change(&world, is_delivery, |item| without(item, EVENT_ID.name())).await;
        world.event("m", "second", &[webhook.id]).await;
        world.minutes(3).await;
        assert_eq!(world.receivers.bodies(URL), ["first", "second"]);
        assert_eq!(world.pending().await, 1, "the row itself, which expires");
        world.event("m", "third", &[webhook.id]).await;
        world.minute().await;
        assert_eq!(world.receivers.bodies(URL), ["first", "second", "third"]);
    })
    .await;
}

#[tokio::test]
async fn an_event_that_cannot_be_read_does_not_hold_up_later_ones() {
    simulated(async {
        let world = World::new().await;
        let webhook = with_pending_event(&world).await;
        change(&world, |key| key.pk.starts_with("HOOK#EVENT#"), |item| without(item, NAME.name())).await;
        world.event("m", "second", &[webhook.id]).await;
        world.minutes(3).await;
        assert_eq!(world.receivers.bodies(URL), ["first", "second"]);
        let dead = world.dead().await;
        assert_eq!(dead.len(), 1);
        assert_eq!(dead[0].answer.as_deref(), Some("the event cannot be read"));
        assert_eq!(world.pending().await, 0);
    })
    .await;
}

#[tokio::test]
async fn events_wait_for_a_webhook_that_cannot_be_read() {
    simulated(async {
        let world = World::new().await;
        let webhook = with_pending_event(&world).await;
        let other = world.webhook("https://other.test/").await;
        let broken = StoredWebhook::key(&Workspace::default(), webhook.id);
        change(&world, |key| *key == broken, |item| without(item, WEBHOOK_URL.name())).await;
        world.event("m", "second", &[webhook.id, other.id]).await;
        world.minutes(5).await;
        assert_eq!(world.receivers.bodies(URL), ["first"]);
        assert_eq!(world.receivers.bodies("https://other.test/"), ["second"]);
        world.put(&webhook).await;
        world.minutes(20).await;
        assert_eq!(world.receivers.bodies(URL), ["first", "first", "second"]);
    })
    .await;
}

/// A queue that cannot be read does not keep the indexer from invoking the delivery of other
/// queues.
#[tokio::test]
async fn a_queue_that_cannot_be_read_does_not_hold_up_others() {
    simulated(async {
        let world = World::new().await;
        let webhook = with_pending_event(&world).await;
        let is_queue = |key: &Key| key.pk.starts_with("HOOK#QUEUE#");
        change(&world, is_queue, |item| without(item, "due")).await;
        for model in ["a", "b", "c", "d", "e"] {
            world.receivers.set(URL, Behaviour::Responds(503, None));
            world.event(model, model, &[webhook.id]).await;
            world.index().await;
            world.receivers.set(URL, Behaviour::Accepts);
        }
        let before = world.receivers.bodies(URL).len();
        world.minutes(3).await;
        let mut bodies = world.receivers.bodies(URL)[before..].to_vec();
        bodies.sort();
        assert_eq!(bodies, ["a", "b", "c", "d", "e"]);
    })
    .await;
}

/// After a rollback, events of a later version are delivered, and subscriptions to them are kept.
#[tokio::test]
async fn events_that_only_a_later_version_knows_are_delivered() {
    const LATER: &str = "registered_model.archived";
    simulated(async {
        let world = World::new().await;
        let webhook = with_pending_event(&world).await;
        change(&world, |key| key.pk.starts_with("HOOK#EVENT#"), |item| item.with(NAME.name(), text(LATER))).await;
        let row = StoredWebhook::key(&Workspace::default(), webhook.id);
        change(
            &world,
            |key| *key == row,
            |item| item.with(EVENTS.name(), bytes_set([LATER.as_bytes().to_vec(), b"prompt.created".to_vec()])),
        )
        .await;
        world.minutes(3).await;
        assert_eq!(world.receivers.bodies(URL), ["first", "first"]);
        assert_eq!((world.pending().await, world.dead().await.len()), (0, 0));

        let item = world.site.table.get(&row).await.unwrap().unwrap();
        let webhook = StoredWebhook::of(&item).unwrap();
        assert_eq!(StoredWebhook::of(&webhook.item(&Workspace::default())).unwrap(), webhook);
        let workspace = Workspace::default();
        let change =
            |subscriptions: WorkspaceSubscriptions| subscriptions.with_change(&workspace, None, Some(&webhook));
        world.site.table.transact(&[change(WorkspaceSubscriptions::default())]).await.unwrap();
        let key = WorkspaceSubscriptions::key(&workspace);
        let stored = world.site.table.get(&key).await.unwrap().unwrap();
        let other = world.webhook("https://other.test/").await;
        let again = WorkspaceSubscriptions::of(Some(&stored)).with_change(&workspace, None, Some(&other));
        world.site.table.transact(&[again]).await.unwrap();
        let after = world.site.table.get(&key).await.unwrap().unwrap();
        let of_webhook =
            |item: &Item| item.map(entities::attributes::SUBSCRIPTIONS).unwrap()[&webhook.id.to_string()].clone();
        assert_eq!(of_webhook(&after), of_webhook(&stored));
        assert_eq!(of_webhook(&after), text(format!("prompt.created {LATER}")));
    })
    .await;
}

/// A dead delivery is not kept longer than its event, because it could not be repeated without the
/// event.
#[tokio::test]
async fn dead_deliveries_expire_with_their_events() {
    simulated(async {
        let world = World::new().await;
        let webhook = world.webhook(URL).await;
        world.receivers.set(URL, Behaviour::Responds(400, None));
        let expiry = async |is_row: fn(&Key) -> bool| {
            let items = world.site.items().await;
            let [item] = items.iter().filter(|item| is_row(&test_site::key_of(item))).collect::<Vec<_>>()[..] else {
                panic!("{items:?}");
            };
            item[entities::attributes::EXPIRES.name()]["N"].as_str().unwrap().parse::<i64>().unwrap()
        };
        let dead = |key: &Key| key.sk.starts_with("DEAD#");
        world.event("m", "x", &[webhook.id]).await;
        world.minute().await;
        let of_event = expiry(|key| key.pk.starts_with("HOOK#EVENT#")).await;
        assert!((of_event - expiry(dead).await) / 86_400 >= 1, "14 days after it has failed");
        // The delivery is repeated after ten days and fails again. Its event then expires in less
        // than 14 days.
        runtime::clock::sleep(std::time::Duration::from_hours(240)).await;
        let [delivery] = world.dead().await.try_into().unwrap();
        resend(&world, &webhook, &delivery).await;
        world.minute().await;
        assert_eq!(world.receivers.bodies(URL).len(), 2);
        assert!((of_event - expiry(dead).await).abs() <= 1);
    })
    .await;
}

/// `webhooks resend` does not remove a dead delivery that has failed again since the command read
/// it.
#[tokio::test]
async fn a_delivery_that_fails_again_at_once_stays_dead() {
    simulated(async {
        let world = World::new().await;
        let webhook = world.webhook(URL).await;
        world.receivers.set(URL, Behaviour::Responds(400, None));
        world.event("m", "x", &[webhook.id]).await;
        world.minute().await;
        let [delivery] = world.dead().await.try_into().unwrap();
        resend(&world, &webhook, &delivery).await;
        world.minute().await;
        delivery.remove_dead(&world.site.table).await.unwrap();
        let [again] = world.dead().await.try_into().unwrap();
        assert_ne!(again.died, delivery.died);
        again.remove_dead(&world.site.table).await.unwrap();
        assert!(world.dead().await.is_empty());
    })
    .await;
}

async fn resend(world: &World, webhook: &StoredWebhook, delivery: &StoredDelivery) {
    let queue = entities::webhooks::QueueId {
        workspace: Workspace::default(),
        webhook: webhook.id,
        model: delivery.model.clone(),
    };
    StoredDelivery::add_again(&world.site.table, &queue, delivery.event).await.unwrap();
    entities::webhooks::StoredQueue::announce(&world.site.table, &queue).await.unwrap();
    world.tick().await;
    world.wait_until_idle().await;
}

//! Webhooks of a workspace that is deleted.

use std::time::Duration;

use entities::webhooks::{QueueId, StoredDelivery, WorkspaceSubscriptions, new_event_id};
use entities::workspaces::{WorkspaceChange, WorkspaceDeletionMode, WorkspaceDocument, Workspaces};
use key_schema::{ModelKey, SequenceNumber};
use mlflow_api::webhooks::WebhookEvent;
use mlflow_api::{ErrorCode, WebhookId, Workspace};
use table::Table;
use webhooks::store::{NewWebhook, Store, WebhookChange};

use crate::server::{Site, URL, store};

const EVENT: WebhookEvent = WebhookEvent::ModelVersionCreated;

fn team() -> Workspace {
    Workspace::parse("team-a").unwrap()
}

fn new(name: &str) -> NewWebhook {
    NewWebhook { name: name.to_owned(), url: URL.to_owned(), events: vec![EVENT], ..NewWebhook::default() }
}

async fn create(workspaces: &Workspaces) {
    workspaces.create(&team(), &WorkspaceChange::default()).await.unwrap();
}

async fn begin_deletion(workspaces: &Workspaces) -> WorkspaceDocument {
    workspaces.begin_deletion(&team(), WorkspaceDeletionMode::Cascade, Duration::ZERO).await.unwrap()
}

/// Returns the number of the workspace's webhooks, and of those that subscribe to `EVENT`.
async fn counts(store: &Store, table: &Table) -> (usize, usize) {
    let row = table.get(&WorkspaceSubscriptions::key(&team())).await.unwrap();
    let subscribers = WorkspaceSubscriptions::of(row.as_ref()).subscribers();
    let listed = store.webhook_list(&team(), 10, "").await.unwrap();
    (listed.webhooks.len(), subscribers.of(EVENT).len())
}

/// Adds a delivery that has failed for good.
async fn bury(table: &Table, webhook: WebhookId) {
    let queue = QueueId { workspace: team(), webhook, model: ModelKey::from("m") };
    StoredDelivery::add(table, &queue, &SequenceNumber::parse("1").unwrap(), new_event_id()).await.unwrap();
    let page = StoredDelivery::pending(table, &queue, None, 1).await.unwrap().unwrap();
    StoredDelivery::of(&page.items[0]).unwrap().bury(table, &queue, "status 400").await.unwrap();
}

#[tokio::test]
async fn webhooks_do_not_change_while_their_workspace_is_being_deleted() {
    let site = Site::new().await;
    let (workspaces, store) = (Workspaces::new(site.table.clone()), store(&site.table));
    create(&workspaces).await;
    let id = store.webhook_create(&team(), new("first")).await.unwrap().webhook_id;
    let change =
        |description: &str| WebhookChange { description: Some(description.to_owned()), ..WebhookChange::default() };
    store.webhook_update(&team(), &id, change("before")).await.unwrap();
    let begun = begin_deletion(&workspaces).await;
    let refused = [
        store.webhook_create(&team(), new("second")).await.unwrap_err(),
        store.webhook_update(&team(), &id, change("after")).await.unwrap_err(),
        store.webhook_delete(&team(), &id).await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!((error.code, &*error.message), (ErrorCode::Aborted, "Workspace 'team-a' is being deleted."));
    }
    workspaces.finish_deletion(&begun).await.unwrap();
    assert_eq!(counts(&store, &site.table).await, (0, 0));
    assert!(store.webhook_update(&team(), &id, change("late")).await.is_err());
}

/// The slower of two concurrent deletions of a workspace finishes after a new workspace was created
/// under the same name.
#[tokio::test]
async fn a_late_deletion_leaves_the_webhooks_of_a_new_workspace_alone() {
    let site = Site::new().await;
    let (workspaces, store) = (Workspaces::new(site.table.clone()), store(&site.table));
    create(&workspaces).await;
    store.webhook_create(&team(), new("old")).await.unwrap();
    let (late, begun) = (begin_deletion(&workspaces).await, begin_deletion(&workspaces).await);
    workspaces.finish_deletion(&begun).await.unwrap();
    assert_eq!(counts(&store, &site.table).await, (0, 0));

    create(&workspaces).await;
    let id = store.webhook_create(&team(), new("new")).await.unwrap().webhook_id;
    bury(&site.table, WebhookId::parse(&id).unwrap()).await;
    workspaces.finish_deletion(&late).await.unwrap();
    assert_eq!(counts(&store, &site.table).await, (1, 1));
    let page = StoredDelivery::dead(&site.table, &team(), None).await.unwrap().unwrap();
    assert_eq!(page.items.len(), 1);

    let begun = begin_deletion(&workspaces).await;
    workspaces.finish_deletion(&begun).await.unwrap();
    assert_eq!(counts(&store, &site.table).await, (0, 0));
    assert!(StoredDelivery::dead(&site.table, &team(), None).await.unwrap().unwrap().items.is_empty());
}

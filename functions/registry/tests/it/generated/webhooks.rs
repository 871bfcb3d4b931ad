//! Calls that send an event, while a webhook subscribes to all events.

use entities::webhooks::{StoredWebhook, WorkspaceSubscriptions, new_webhook_id};
use mlflow_api::Workspace;
use mlflow_api::webhooks::{WebhookEvent, WebhookStatus};
use registry::store::Store;
use table::{Condition, Table, Write};
use test_site::ledger::{CostLedger, MeteredProcesses, budget};

use super::{NewModel, PROMPT, bench, create, create_version, named, new_model, version};

/// Puts a webhook that subscribes to all events.
async fn subscribe(table: &Table) {
    let workspace = &Workspace::default();
    let webhook = StoredWebhook {
        id: new_webhook_id(),
        name: "hook".to_owned(),
        description: String::new(),
        url: "https://example.com/".to_owned(),
        events: WebhookEvent::ALL.to_vec(),
        unknown_events: Vec::new(),
        status: WebhookStatus::Active,
        secret: None,
        created: 1,
        updated: 1,
        changes: 0,
        imported: None,
    };
    let subscriptions = WorkspaceSubscriptions::default().with_change(workspace, None, Some(&webhook));
    let put = Write::Put(webhook.item(workspace), Condition::item_missing());
    table.transact(&[put, subscriptions]).await.unwrap();
}

pub(super) async fn rows(ledger: &mut CostLedger) {
    ledger.section("With a webhook that subscribes to all events");
    let bench = &bench().await;
    subscribe(bench.table()).await;
    let names = ["model 1", "model 2"];
    ledger
        .row(
            "create model, with its event",
            budget([2.0, 10.0, 1.0], [1.0, 10.0, 0.0]),
            bench,
            names,
            async |store, name| {
                create(store, name, &new_model()).await;
            },
        )
        .await;
    ledger
        .row(
            "create version, with its event",
            budget([3.0, 12.0, 2.0], [2.0, 12.0, 1.0]),
            bench,
            names,
            async |store, name| {
                create_version(store, name, &version()).await;
            },
        )
        .await;
    for name in names {
        create_version(&bench.store, name, &version()).await;
    }
    ledger
        .row(
            "set a tag of a version, with its event",
            budget([3.0, 6.0, 3.0], [2.0, 6.0, 2.0]),
            bench,
            names,
            async |store, name| {
                store.version_set_tag(&named(store, name).await, "1", "note", "a remark").await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "delete a tag of a version, with its event",
            budget([3.0, 6.0, 3.0], [2.0, 6.0, 2.0]),
            bench,
            names,
            async |store, name| {
                store.version_delete_tag(&named(store, name).await, "1", "note").await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "set alias, with its event",
            budget([3.0, 7.0, 3.0], [2.0, 7.0, 2.0]),
            bench,
            names,
            async |store, name| {
                store.alias_set(&named(store, name).await, "champion", "1").await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "set an alias to the version that it has, with its event",
            budget([3.0, 4.0, 3.0], [2.0, 4.0, 2.0]),
            bench,
            names,
            async |store, name| {
                store.alias_set(&named(store, name).await, "champion", "1").await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "delete alias, with its event",
            budget([3.0, 7.0, 2.0], [2.0, 7.0, 1.0]),
            bench,
            names,
            async |store, name| {
                store.alias_delete(&named(store, name).await, "champion").await.unwrap();
            },
        )
        .await;
    of_models_and_prompts(ledger, bench, names).await;
}

async fn of_models_and_prompts(ledger: &mut CostLedger, bench: &MeteredProcesses<Store>, names: [&str; 2]) {
    let workspace = &Workspace::default();
    ledger
        .row(
            "set a tag of a model, without an event",
            budget([3.0, 1.0, 2.0], [2.0, 1.0, 1.0]),
            bench,
            names,
            async |store, name| {
                store.model_set_tag(workspace, &named(store, name).await, "note", "a remark").await.unwrap();
            },
        )
        .await;
    let prompts = ["prompt 1", "prompt 2"];
    for name in prompts {
        let tags = vec![(PROMPT.to_owned(), "true".to_owned())];
        create(&bench.store, name, &NewModel { tags, ..NewModel::default() }).await;
    }
    ledger
        .row(
            "set a tag of a prompt, with its event",
            budget([4.0, 4.0, 3.0], [3.0, 4.0, 2.0]),
            bench,
            prompts,
            async |store, name| {
                store.model_set_tag(workspace, &named(store, name).await, "note", "a remark").await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "delete a tag of a prompt, with its event",
            budget([3.0, 4.0, 2.0], [2.0, 4.0, 1.0]),
            bench,
            prompts,
            async |store, name| {
                store.model_delete_tag(workspace, &named(store, name).await, "note").await.unwrap();
            },
        )
        .await;
}

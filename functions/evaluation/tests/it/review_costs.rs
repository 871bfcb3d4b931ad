//! The metered costs of label schemas, review queues and issues.

use access::{Granted, Target};
use evaluation::store::{
    IssueChange, IssueSearch, LabelSchemaChange, NewIssue, NewLabelSchema, ReviewQueueChange, ReviewQueueConditions,
    Store,
};
use key_schema::rows;
use mlflow_api::issues::{IssueStatus, Metadata};
use mlflow_api::label_schemas::{LabelInput, LabelSchemaType};
use mlflow_api::review_queues::{NewReviewQueue, ReviewQueueType, ReviewStatus};
use mlflow_api::{ExperimentId, IssueId, LabelSchemaId, ReviewQueueId, TraceId};
use search::{IssueQuery, parse_issue_search};
use table::{Item, Map, map, number, text};
use test_site::ledger::{CostLedger, budget};

use crate::generated::{bench, scope};

async fn granted(store: &Store, experiment: ExperimentId) -> Granted<ExperimentId> {
    scope(store, Target::Experiment(experiment)).await.experiment(experiment).unwrap()
}

fn schema(name: &str) -> NewLabelSchema {
    NewLabelSchema {
        name: name.to_owned(),
        kind: LabelSchemaType::Feedback,
        input: LabelInput::PassFail { positive_label: "Yes".to_owned(), negative_label: "No".to_owned() },
        instruction: Some("Is the answer supported by the context?".to_owned()),
        enable_comment: true,
    }
}

fn queue(name: &str) -> NewReviewQueue {
    NewReviewQueue::checked(ReviewQueueType::Custom, name, &["ann".to_owned(), "bob".to_owned()], &[]).unwrap()
}

/// Stores the documents of this many traces in an experiment, and returns the ids of the traces.
async fn traces(store: &Store, experiment: ExperimentId, count: u32) -> Vec<String> {
    let empty = || map(Map::new());
    let document = |id: &TraceId| {
        Item::new(rows::Trace::key(id))
            .with("experiment", text(experiment.to_string()))
            .with("start_time", number(1))
            .with("state", text("OK"))
            .with("tags", empty())
            .with("metadata", empty())
            .with("assessments", empty())
            .with("marked", number(1))
            .with("edits", number(1))
    };
    let ids: Vec<_> = (0..count).map(|number| TraceId::new(u128::from(number))).collect();
    let table = service::DomainStore::table(store);
    table.write_many(ids.iter().map(document).collect(), &[]).await.unwrap();
    ids.iter().map(ToString::to_string).collect()
}

pub(crate) async fn label_schemas(ledger: &mut CostLedger) {
    ledger.section("Label schemas");
    let (bench, id) = bench().await;
    let (bench, experiment) = (&bench, &granted(&bench.store, id).await);
    ledger
        .row(
            "create a label schema",
            budget([2.0, 4.0, 1.0], [1.0, 4.0, 0.0]),
            bench,
            ["first", "second"],
            async |store, name| {
                store.label_schema_create(experiment, &schema(name)).await.unwrap();
            },
        )
        .await;
    let mut schemas = Vec::new();
    for name in ["third", "fourth"] {
        let made = bench.store.label_schema_create(experiment, &schema(name)).await.unwrap();
        schemas.push(LabelSchemaId::parse(&made.schema_id).unwrap());
    }
    let both = [&schemas[0], &schemas[1]];
    let change = &LabelSchemaChange { instruction: Some("Is it?".to_owned()), ..LabelSchemaChange::default() };
    ledger
        .row("change it", budget([2.0, 2.0, 1.0], [2.0, 2.0, 1.0]), bench, both, async |store, schema| {
            store.label_schema_update(experiment, schema, change).await.unwrap();
        })
        .await;
    ledger
        .row(
            "list the label schemas of an experiment",
            budget([2.0, 0.0, 2.0], [1.0, 0.0, 1.0]),
            bench,
            [(), ()],
            async |store, ()| {
                assert_eq!(store.label_schema_list(experiment, 100, "").await.unwrap().label_schemas.len(), 5);
            },
        )
        .await;
    ledger
        .row("delete one", budget([2.0, 4.0, 1.0], [2.0, 4.0, 1.0]), bench, both, async |store, schema| {
            store.label_schema_delete(experiment, schema).await.unwrap();
        })
        .await;
}

pub(crate) async fn review_queues(ledger: &mut CostLedger) {
    ledger.section("Review queues");
    let (bench, id) = bench().await;
    let (bench, experiment) = (&bench, &granted(&bench.store, id).await);
    ledger
        .row(
            "create a queue",
            budget([2.0, 4.0, 1.0], [1.0, 4.0, 0.0]),
            bench,
            ["first", "second"],
            async |store, name| {
                store.review_queue_create(experiment, &queue(name), Some("ann")).await.unwrap();
            },
        )
        .await;
    let mut queues = Vec::new();
    for name in ["third", "fourth"] {
        let made = bench.store.review_queue_create(experiment, &queue(name), None).await.unwrap();
        queues.push(ReviewQueueId::parse(&made.queue_id).unwrap());
    }
    let both = [&queues[0], &queues[1]];
    ledger
        .row(
            "get or create the queue of a user",
            budget([3.0, 4.0, 2.0], [2.0, 4.0, 1.0]),
            bench,
            ["carol", "dan"],
            async |store, user| {
                store.review_queue_get_or_create(experiment, user).await.unwrap();
            },
        )
        .await;
    let all = &ReviewQueueConditions::default();
    ledger
        .row(
            "list the queues of an experiment",
            budget([2.0, 0.0, 2.0], [1.0, 0.0, 1.0]),
            bench,
            [(), ()],
            async |store, ()| {
                assert_eq!(store.review_queue_list(experiment, all, 1_000, "").await.unwrap().review_queues.len(), 6);
            },
        )
        .await;
    let change = &ReviewQueueChange { users: Some(vec!["eve".to_owned()]), ..ReviewQueueChange::default() };
    ledger
        .row("change its users", budget([2.0, 2.0, 1.0], [2.0, 2.0, 1.0]), bench, both, async |store, queue| {
            store.review_queue_update(experiment, queue, change).await.unwrap();
        })
        .await;
    let ids = &traces(&bench.store, id, 100).await;
    ledger
        .row("add 100 traces", budget([6.0, 606.0, 200.0], [6.0, 606.0, 200.0]), bench, both, async |store, queue| {
            assert_eq!(store.review_items_add(experiment, queue, ids).await.unwrap().len(), 100);
        })
        .await;
    ledger
        .row("set a status", budget([2.0, 1.0, 1.0], [2.0, 1.0, 1.0]), bench, both, async |store, queue| {
            let status = ReviewStatus::Complete;
            store.review_item_set_status(experiment, queue, &ids[0], status, Some("ann")).await.unwrap();
        })
        .await;
    ledger
        .row("list 100 items", budget([1.0, 0.0, 110.0], [1.0, 0.0, 110.0]), bench, both, async |store, queue| {
            assert_eq!(store.review_items_list(experiment, queue, None, 100, "").await.unwrap().items.len(), 100);
        })
        .await;
    ledger
        .row(
            "remove 100 traces",
            budget([6.0, 600.0, 100.0], [6.0, 600.0, 100.0]),
            bench,
            both,
            async |store, queue| {
                store.review_items_remove(experiment, queue, ids).await.unwrap();
            },
        )
        .await;
}

fn issue(number: usize) -> NewIssue {
    NewIssue {
        id: None,
        name: format!("The agent calls a wrong tool in case {number}"),
        description: "The agent calls a tool whose result does not answer the question of the user. ".repeat(5),
        status: IssueStatus::Pending,
        severity: Some(mlflow_api::issues::IssueSeverity::High),
        root_causes: Vec::new(),
        source_run: None,
        categories: vec!["correctness".to_owned()],
        created_by: Some("ann".to_owned()),
        last_seen: None,
        metadata: Metadata::new(),
    }
}

fn search(experiment: ExperimentId, is_basic: bool) -> IssueSearch {
    let query = IssueQuery::default();
    let (filter, order) = parse_issue_search(&query).unwrap();
    IssueSearch {
        filter,
        order,
        fingerprint: query.fingerprint(Some(experiment), None),
        max_results: 100,
        page_token: String::new(),
        has_trace_counts: false,
        has_total: true,
        is_basic,
    }
}

pub(crate) async fn issues(ledger: &mut CostLedger) {
    ledger.section("Issues");
    let (bench, id) = bench().await;
    let (bench, experiment) = (&bench, &granted(&bench.store, id).await);
    ledger
        .row("create an issue", budget([2.0, 6.0, 1.0], [1.0, 6.0, 0.0]), bench, [1, 2], async |store, number| {
            store.issue_create(experiment, &issue(*number)).await.unwrap();
        })
        .await;
    let mut issues = Vec::new();
    for number in 2..1_000 {
        let made = bench.store.issue_create(experiment, &issue(number)).await.unwrap();
        issues.push(IssueId::parse(&made.issue_id).unwrap());
    }
    let both = [&issues[0], &issues[1]];
    ledger
        .row("get it", budget([1.0, 0.0, 2.0], [1.0, 0.0, 2.0]), bench, both, async |store, issue| {
            store.issue_get(experiment, issue).await.unwrap();
        })
        .await;
    let change = &IssueChange { status: Some(IssueStatus::Resolved), ..IssueChange::default() };
    ledger
        .row("change its status", budget([3.0, 2.0, 4.0], [3.0, 2.0, 4.0]), bench, both, async |store, issue| {
            store.issue_update(experiment, issue, change).await.unwrap();
        })
        .await;
    for (call, is_basic, budget) in [
        ("search 1,000 issues without texts", true, budget([1.0, 0.0, 100.0], [1.0, 0.0, 100.0])),
        ("search 1,000 issues", false, budget([2.0, 0.0, 200.0], [2.0, 0.0, 200.0])),
    ] {
        let search = &search(id, is_basic);
        ledger
            .row(call, budget, bench, [(), ()], async |store, ()| {
                assert_eq!(
                    store.issue_search(std::slice::from_ref(experiment), search).await.unwrap().issues.len(),
                    100
                );
            })
            .await;
    }
}

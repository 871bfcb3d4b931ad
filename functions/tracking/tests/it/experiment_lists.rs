//! Lists of experiments by time, which are read only as far as a page needs them.

use entities::attributes::{CREATED, UPDATED};
use futures::future::join_all;
use key_schema::index::{ExperimentsByChange, ExperimentsByStage};
use key_schema::{Descending, Name, Stage, rows};
use mlflow_api::ExperimentId;
use serde_json::{Value, json};
use table::{Update, number as number_of};
use test_site::all_troubles;

use crate::server::{Server, Site};

/// Returns a page of a search, and the token of the next page.
async fn page(
    server: &Server,
    order: &Value,
    filter: &str,
    page_size: usize,
    token: &str,
) -> (Vec<Value>, Option<String>) {
    let search = json!({ "max_results": page_size, "page_token": token, "filter": filter, "order_by": order });
    let page = server.post("experiments/search", search).await.ok();
    let experiments = page["experiments"].as_array().cloned().unwrap_or_default();
    assert!(experiments.len() <= page_size);
    let next = page["next_page_token"].as_str().filter(|next| !next.is_empty()).map(str::to_owned);
    (experiments, next)
}

/// Returns all experiments that a search finds, over all pages.
async fn search(server: &Server, order: &Value, filter: &str, page_size: usize) -> Vec<Value> {
    let (mut found, mut next) = page(server, order, filter, page_size, "").await;
    while let Some(token) = next {
        let (more, token) = page(server, order, filter, page_size, &token).await;
        found.extend(more);
        next = token;
    }
    found
}

fn number(experiment: &Value, field: &str) -> i64 {
    experiment[field].as_str().map_or_else(|| experiment[field].as_i64().unwrap(), |text| text.parse().unwrap())
}

#[tokio::test]
async fn pages_by_time_are_whole_and_in_order() {
    let site = Site::new().await;
    let server = &site.server;
    let names: Vec<_> = (0..120).map(|number| format!("experiment {number}")).collect();
    let ids = join_all(names.iter().map(|name| server.experiment(name))).await;
    join_all(ids.iter().step_by(3).map(|id| async move {
        let tag = json!({ "experiment_id": id, "key": "kind", "value": "other" });
        server.post("experiments/set-experiment-tag", tag).await.ok();
    }))
    .await;
    join_all(ids.iter().zip(&names).enumerate().map(|(place, (id, name))| async move {
        let rename = |name: &str| json!({ "experiment_id": id, "new_name": name });
        let changes = match place % 8 {
            0 => vec![("update", rename(name))],
            1 => vec![("update", rename(id))],
            2 => vec![("delete", json!({ "experiment_id": id }))],
            3 => vec![("delete", json!({ "experiment_id": id })), ("restore", json!({ "experiment_id": id }))],
            _ => vec![],
        };
        for (what, change) in changes {
            server.post(&format!("experiments/{what}"), change).await.ok();
        }
    }))
    .await;
    let mut all = search(server, &json!(["name"]), "", 1_000).await;
    assert_eq!(all.len(), 1 + 120 - 15, "the default experiment, and those that are not deleted");
    let is_other = |experiment: &Value| experiment["tags"].as_array().is_some_and(|tags| !tags.is_empty());
    for field in ["creation_time", "last_update_time"] {
        for (direction, sign) in [("ASC", 1), ("DESC", -1)] {
            all.sort_by_key(|one| (sign * number(one, field), -number(one, "experiment_id")));
            let others: Vec<_> = all.iter().filter(|one| is_other(one)).cloned().collect();
            let rest: Vec<_> = all.iter().filter(|one| !is_other(one)).cloned().collect();
            let order = json!([format!("{field} {direction}")]);
            for page_size in [1, 7, 60, 1_000] {
                // A page size of 1 takes longer than all other page sizes together. By default, it
                // is tested only with the shortest list.
                let is_whole = page_size > 1 || all_troubles();
                let wanted = [("tags.kind = 'other'", &others), ("", &all), ("tags.kind IS NULL", &rest)];
                for (filter, expected) in wanted.into_iter().take(if is_whole { 3 } else { 1 }) {
                    let found = search(server, &order, filter, page_size).await;
                    assert_eq!(found, *expected, "{order} {page_size} {filter}");
                }
            }
            let since = number(&all[60], field);
            let found = search(server, &order, &format!("{field} >= {since}"), 5).await;
            let expected: Vec<_> = all.iter().filter(|one| number(one, field) >= since).cloned().collect();
            assert_eq!(found, expected, "{order}");
        }
    }
    all.sort_by_key(|one| (-number(one, "creation_time"), number(one, "experiment_id")));
    assert_eq!(search(server, &json!([]), "", 7).await, all);
}

#[tokio::test]
async fn experiments_of_one_time_are_in_the_order_of_their_ids() {
    let site = Site::new().await;
    let server = &site.server;
    let names: Vec<_> = (0..45).map(|number| format!("experiment {number}")).collect();
    let ids = join_all(names.iter().map(|name| server.experiment(name))).await;
    // The list contains groups of experiments with equal times that are longer than a page.
    let changes = ids.iter().zip(&names).enumerate().map(|(place, (id, name))| {
        let id: ExperimentId = ExperimentId::parse(id).unwrap();
        let time = 1_700_000_000_000 + i64::try_from(place / 15).unwrap();
        let item = Update::new(rows::Experiment::key(&id)).set(CREATED, number_of(time)).set(UPDATED, number_of(time));
        let name = Update::new(rows::ExperimentName::key(&Name::from("default"), &Name::from(name.as_str())))
            .indexed(ExperimentsByStage::key(&Stage::Active, &Descending(time), &id))
            .indexed(ExperimentsByChange::key(&Stage::Active, &Descending(time), &id));
        [item, name]
    });
    for update in changes.flatten() {
        site.table.update(&update).await.unwrap();
    }
    let mut all = search(server, &json!(["name"]), "name LIKE 'experiment %'", 1_000).await;
    for field in ["creation_time", "last_update_time"] {
        for (clause, sign, id_sign) in [("ASC", 1, -1), ("DESC", -1, -1), ("DESC, experiment_id ASC", -1, 1)] {
            let order: Vec<_> = format!("{field} {clause}").split(", ").map(str::to_owned).collect();
            all.sort_by_key(|one| (sign * number(one, field), id_sign * number(one, "experiment_id")));
            for page_size in [1, 4, 15, 16, 100] {
                let found = search(server, &json!(order), "tags.x IS NULL AND name != 'Default'", page_size).await;
                assert_eq!(found, all, "{order:?} {page_size}");
            }
        }
    }
}

#[tokio::test]
async fn what_changes_between_two_pages_is_shown_once_or_is_at_the_top() {
    let site = Site::new().await;
    let server = &site.server;
    let names: Vec<_> = (0..12).map(|number| format!("experiment {number}")).collect();
    let mut ids = join_all(names.iter().map(|name| server.experiment(name))).await;
    ids.push("0".to_owned());
    let order = json!(["last_update_time DESC"]);
    let (first, token) = page(server, &order, "", 4, "").await;
    let id = |one: &Value| one["experiment_id"].as_str().unwrap().to_owned();
    let shown: Vec<_> = first.iter().map(id).collect();
    let rest: Vec<_> = ids.iter().filter(|id| !shown.contains(id)).collect();
    let rename = |id: &str| json!({ "experiment_id": id, "new_name": format!("renamed {id}") });
    for changed in [&shown[1], rest[2]] {
        server.post("experiments/update", rename(changed)).await.ok();
    }
    server.post("experiments/delete", json!({ "experiment_id": rest[5] })).await.ok();
    let (second, last) = page(server, &order, "", 100, &token.unwrap()).await;
    let mut found: Vec<_> = second.iter().map(id).collect();
    let mut expected: Vec<_> =
        rest.iter().enumerate().filter(|(place, _)| ![2, 5].contains(place)).map(|(_, id)| (*id).clone()).collect();
    found.sort();
    expected.sort();
    assert_eq!((found, last), (expected, None));
    let mut top: Vec<_> = page(server, &order, "", 2, "").await.0.iter().map(id).collect();
    let mut renamed = [rest[2].clone(), shown[1].clone()];
    top.sort();
    renamed.sort();
    assert_eq!(top, renamed);
}

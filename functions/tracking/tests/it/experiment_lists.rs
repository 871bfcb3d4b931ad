//! Lists of experiments by time, which are read as far as a page needs them.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::server::{Server, Site};

/// All experiments of a search, page after page.
async fn search(server: &Server, order: &Value, filter: &str, page_size: usize) -> Vec<Value> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let search = json!({ "max_results": page_size, "page_token": token, "filter": filter, "order_by": order });
        let page = server.post("experiments/search", search).await.ok();
        let experiments = page["experiments"].as_array().cloned().unwrap_or_default();
        assert!(experiments.len() <= page_size);
        found.extend(experiments);
        match page["next_page_token"].as_str() {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => return found,
        }
    }
}

fn number(experiment: &Value, field: &str) -> i64 {
    experiment[field].as_str().map_or_else(|| experiment[field].as_i64().unwrap(), |text| text.parse().unwrap())
}

#[tokio::test]
async fn pages_by_time_are_whole_and_in_order() {
    let site = Site::new().await;
    let server = &site.server;
    // Together, so that some have the same time.
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
    assert_eq!(all.len(), 1 + 120 - 15, "the default one, and those that are not deleted");
    let is_other = |experiment: &Value| experiment["tags"].as_array().is_some_and(|tags| !tags.is_empty());
    for field in ["creation_time", "last_update_time"] {
        for (direction, sign) in [("ASC", 1), ("DESC", -1)] {
            all.sort_by_key(|one| (sign * number(one, field), -number(one, "experiment_id")));
            let others: Vec<_> = all.iter().filter(|one| is_other(one)).cloned().collect();
            let rest: Vec<_> = all.iter().filter(|one| !is_other(one)).cloned().collect();
            let order = json!([format!("{field} {direction}")]);
            for page_size in [1, 7, 60, 1_000] {
                assert_eq!(search(server, &order, "", page_size).await, all, "{order} {page_size}");
                let found = search(server, &order, "tags.kind = 'other'", page_size).await;
                assert_eq!(found, others, "{order} {page_size}");
                let found = search(server, &order, "tags.kind IS NULL", page_size).await;
                assert_eq!(found, rest, "{order} {page_size}");
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

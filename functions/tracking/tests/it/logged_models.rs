//! Logged models: reads, and concurrent writes, including writes while the table fails.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::calls::ModelPoint;
use axum::body::Body;
use futures::future::join_all;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::server::{Server, Site, TestResponse, by_key};

pub(crate) async fn call(server: &Server, method: &str, path: &str, body: Value) -> TestResponse {
    let request = Request::builder().method(method).uri(format!("/api/2.0/mlflow/logged-models{path}"));
    let request = request.header(CONTENT_TYPE, "application/json").body(Body::from(body.to_string()));
    server.send(request.unwrap()).await
}

pub(crate) async fn create(server: &Server, new: Value) -> String {
    let model = call(server, "POST", "", new).await.ok();
    model["model"]["info"]["model_id"].as_str().unwrap().to_owned()
}

async fn read(server: &Server, model: &str) -> Value {
    let found = server.get(&format!("logged-models/{model}"), &[("allow_deleted", "true")]).await.ok();
    found["model"].clone()
}

async fn set_tags(server: &Server, model: &str, tags: Value) -> TestResponse {
    call(server, "PATCH", &format!("/{model}/tags"), json!({ "tags": tags })).await
}

async fn log_params(server: &Server, model: &str, params: Value) -> TestResponse {
    call(server, "POST", &format!("/{model}/params"), json!({ "model_id": model, "params": params })).await
}

/// Returns the names of the models on each page of a search.
async fn pages(server: &Server, mut search: Value) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = call(server, "POST", "/search", search.clone()).await.ok();
        let models = page["models"].as_array().map(Vec::as_slice).unwrap_or_default();
        pages.push(models.iter().map(|model| model["info"]["name"].as_str().unwrap().to_owned()).collect());
        match page["next_page_token"].as_str() {
            Some(token) => search["page_token"] = token.into(),
            None => return pages,
        }
    }
}

async fn names(server: &Server, search: Value) -> Vec<String> {
    pages(server, search).await.concat()
}

fn point(model: &str, key: &str, (timestamp, step, value): (i64, i64, f64)) -> ModelPoint {
    ModelPoint {
        model: model.to_owned(),
        key: key.to_owned(),
        value,
        timestamp,
        step,
        run_id: "0123456789abcdef0123456789abcdef".to_owned(),
        ..ModelPoint::default()
    }
}

/// Returns the steps of each metric of a model, as a client reads them. Duplicates are not removed,
/// so that tests notice them.
async fn steps(server: &Server, model: &str) -> BTreeMap<String, Vec<i64>> {
    let mut steps: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for metric in read(server, model).await["data"]["metrics"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let of_metric = steps.entry(metric["key"].as_str().unwrap().to_owned()).or_default();
        of_metric.push(metric["step"].as_i64().unwrap());
    }
    steps
}

#[tokio::test]
async fn many_at_once_while_the_table_fails() {
    // A request is sent up to ten times. Even if every fifth attempt fails, it is unlikely that all
    // attempts of a request fail by chance.
    for &(refuse, lose) in &[(5, 0), (0, 5), (10, 0), (0, 7)][..if test_site::all_troubles() { 4 } else { 2 }] {
        let site = Site::new().await;
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let server = &site.server;
        let experiment = server.experiment("models").await;
        let shared = create(server, json!({ "experiment_id": experiment, "name": "shared" })).await;
        let (experiment, shared) = (experiment.as_str(), shared.as_str());
        let made = join_all((0..8_i64).map(|task| async move {
            let params = json!([{ "key": "p", "value": "v".repeat(2_000) }, { "key": "q", "value": task.to_string() }]);
            let new = json!({ "experiment_id": experiment, "name": format!("n{task}"), "source_run_id": "r", "params": params });
            let model = create(server, new).await;
            for round in 0..6 {
                let tags = json!([{ "key": "last", "value": round.to_string() }, { "key": "big", "value": "w".repeat(1_100) }]);
                set_tags(server, &model, tags).await.ok();
                set_tags(server, shared, json!([{ "key": format!("t{task}"), "value": round.to_string() }])).await.ok();
                log_params(server, shared, json!([{ "key": format!("p{task}.{round}"), "value": "x" }])).await.ok();
                let step = task * 100 + round;
                let points = [point(&model, "own", (step, step, 1.0)), point(shared, "all", (step, step, 1.0))];
                server.store.logged_model_log_metrics(&points).await.unwrap();
            }
            call(server, "DELETE", &format!("/{model}/tags/big"), json!({})).await.ok();
            call(server, "PATCH", &format!("/{model}"), json!({ "model_id": model, "status": 2 })).await.ok();
            if task % 2 == 1 {
                call(server, "DELETE", &format!("/{model}"), json!({})).await.ok();
            }
            model
        }))
        .await;
        site.faults.refuse_every(0);
        site.faults.lose_answer_every(0);

        let found = read(server, shared).await;
        assert_eq!(by_key(&found["info"]["tags"]).len(), 8);
        assert_eq!(by_key(&found["data"]["params"]).len(), 48);
        let expected: Vec<_> = (0..8).flat_map(|task| (0..6).map(move |round| task * 100 + round)).collect();
        assert_eq!(steps(server, shared).await["all"], expected);
        for (task, model) in made.iter().enumerate() {
            let found = read(server, model).await;
            assert_eq!(found["info"]["status"], "LOGGED_MODEL_READY");
            assert_eq!(by_key(&found["info"]["tags"]), BTreeMap::from([("last".to_owned(), json!("5"))]));
            assert_eq!(by_key(&found["data"]["params"])["q"], task.to_string());
            assert_eq!(steps(server, model).await["own"].len(), 6);
        }
        for filter in ["source_run_id = 'r'", "params.p LIKE 'vvv%'", "metrics.own > 0"] {
            let search =
                json!({ "experiment_ids": [experiment], "filter": filter, "order_by": [{ "field_name": "name" }] });
            assert_eq!(names(server, search).await, ["n0", "n2", "n4", "n6"], "{filter}");
        }
        let models =
            site.dump().await.into_keys().filter(|key| key.contains(" LM#") && key.matches('#').count() == 2).count();
        assert_eq!(models, 9, "no model was made twice");
    }
}

#[tokio::test]
async fn every_point_is_kept_however_many() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    let model = create(server, json!({ "experiment_id": experiment })).await;
    let few = create(server, json!({ "experiment_id": experiment })).await;
    let store = &server.store;
    for step in 0..700 {
        store.logged_model_log_metrics(&[point(&model, "single", (step, step, 0.5))]).await.unwrap();
    }
    let bulk: Vec<_> = (0..2_000).map(|step| point(&model, "bulk", (step, step, 0.25))).collect();
    for part in bulk.chunks(1_000) {
        store.logged_model_log_metrics(part).await.unwrap();
        // Logging a part twice has the same effect as logging it once.
        store.logged_model_log_metrics(part).await.unwrap();
    }
    let wide: Vec<_> = (0..1_000).map(|number| point(&model, &format!("wide{number}"), (1, 7, 0.0))).collect();
    store.logged_model_log_metrics(&wide).await.unwrap();
    store.logged_model_log_metrics(&[point(&few, "loss", (1, 1, 1.0))]).await.unwrap();

    let steps = steps(server, &model).await;
    assert_eq!(steps["single"], (0..700).collect::<Vec<_>>());
    assert_eq!(steps["bulk"], (0..2_000).collect::<Vec<_>>());
    assert_eq!(steps.len(), 1_002);
    let items = site.dump().await;
    let waiting = &items[&format!("EXP#{experiment} LM#{model}#METRIC")];
    assert!(waiting.to_string().len() < 30_000, "{}", waiting.to_string().len());
    assert!(items.keys().any(|key| key.starts_with(&format!("MODEL#{model} MHIST#"))));
    assert!(!items.keys().any(|key| key.starts_with(&format!("MODEL#{few}"))));
    // Searches also filter and sort by points that have been moved to segments.
    let found = |filter: &str| {
        let search = json!({ "experiment_ids": [experiment], "filter": filter });
        async move { names(server, search).await.len() }
    };
    assert_eq!(found("metrics.bulk = 0.25").await, 1);
    assert_eq!(found("metrics.wide999 = 0").await, 1);
    assert_eq!(found("metrics.wide999 != 0").await, 0);
    let by_metric = json!({ "experiment_ids": [experiment], "order_by": [{ "field_name": "metrics.bulk" }] });
    let page = call(server, "POST", "/search", by_metric).await.ok();
    assert_eq!(page["models"][0]["info"]["model_id"], model);
    assert_eq!(page["models"][0]["data"]["metrics"].as_array().unwrap().len(), 3_700);
}

#[tokio::test]
#[ignore = "takes a hundred calls of a thousand points; part of `make test-slow`"]
async fn a_model_with_a_hundred_thousand_points() {
    let site = Site::new().await;
    let experiment = site.server.experiment("models").await;
    let model = create(&site.server, json!({ "experiment_id": experiment })).await;
    for first in (0..100_000).step_by(1_000) {
        let points: Vec<_> = (first..first + 1_000).map(|step| point(&model, "loss", (step, step, 0.5))).collect();
        site.server.store.logged_model_log_metrics(&points).await.unwrap();
    }
    let found = site.server.store.logged_model_get(&model, false).await.unwrap();
    assert!(found.data.metrics.iter().map(|point| point.step).eq(0..100_000));
}

#[tokio::test]
async fn points_of_a_model_that_is_not_there_leave_nothing() {
    let site = Site::new().await;
    let experiment = site.server.experiment("models").await;
    let model = create(&site.server, json!({ "experiment_id": experiment })).await;
    let before = site.dump().await;
    let gone = model.replace("m-0", "m-1");
    let foreign = "m-f47ac10b58cc4372a5670e02b2c3d479";
    for other in [gone.as_str(), foreign, "a b", "", "a#b"] {
        let bulk: Vec<_> = (0..1_000).map(|step| point(other, "m", (step, step, 0.0))).collect();
        for points in [&bulk[..1], &bulk] {
            let error = site.server.store.logged_model_log_metrics(points).await.unwrap_err();
            assert_eq!(error.code.name(), "BAD_REQUEST");
            assert_eq!(error.message, format!("Logged model with ID '{other}' not found."));
        }
    }
    assert_eq!(site.dump().await, before);
}

#[tokio::test]
#[ignore = "takes five seconds of a core; part of `make test-slow`"]
async fn documents_of_every_size() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    let entries = |name: &str, count: usize, bytes: usize| -> Vec<Value> {
        (0..count)
            .map(|n| json!({ "key": format!("{name}{n}"), "value": format!("{n}{}", "v".repeat(bytes)) }))
            .collect()
    };
    for (count, bytes) in [(3, 10), (150, 10), (150, 1_100), (30, 200_000)] {
        let new = json!({ "experiment_id": experiment, "params": entries("p", count, bytes), "tags": entries("t", count, bytes) });
        let model = call(server, "POST", "", new).await.ok()["model"].clone();
        let id = model["info"]["model_id"].as_str().unwrap().to_owned();
        assert_eq!(model, read(server, &id).await, "{count} {bytes}");
        assert_eq!(by_key(&model["data"]["params"]).len(), count);
        assert_eq!(by_key(&model["info"]["tags"]).len(), count);
        // Batches of the same sizes are logged in later calls, and these calls are then repeated.
        for _ in 0..2 {
            log_params(server, &id, entries("later", count, bytes).into()).await.ok();
            set_tags(server, &id, entries("later", count, bytes).into()).await.ok();
        }
        let model = read(server, &id).await;
        assert_eq!(by_key(&model["data"]["params"]).len(), 2 * count, "{count} {bytes}");
        assert_eq!(by_key(&model["info"]["tags"]).len(), 2 * count, "{count} {bytes}");
        let other = json!([{ "key": "new", "value": "" }, { "key": "later0", "value": "other" }]);
        log_params(server, &id, other).await.refused(400, "BAD_REQUEST");
        assert!(!by_key(&read(server, &id).await["data"]["params"]).contains_key("new"));
        let search = json!({ "experiment_ids": [experiment], "filter": format!("params.p0 = '0{}' AND model_id = '{id}'", "v".repeat(bytes)) });
        assert_eq!(names(server, search).await.len(), 1);
    }
    let before = site.dump().await;
    let model = before.keys().find_map(|key| key.strip_prefix(&format!("EXP#{experiment} LM#"))).unwrap().to_owned();
    for bytes in [395_000, 500_000, 5_000_000] {
        let huge = "h".repeat(bytes);
        for new in [
            json!({ "tags": entries("t", 1, bytes) }),
            json!({ "tags": [{ "key": huge, "value": "" }] }),
            json!({ "params": entries("p", 2, bytes) }),
            json!({ "name": huge }),
            json!({ "model_type": huge, "tags": entries("t", 120, 2_000) }),
            json!({ "source_run_id": huge }),
        ] {
            let mut new = new;
            new["experiment_id"] = json!(experiment);
            call(server, "POST", "", new).await.refused(400, "BAD_REQUEST");
        }
        set_tags(server, &model, entries("huge", 1, bytes).into()).await.refused(400, "BAD_REQUEST");
        log_params(server, &model, entries("huge", 1, bytes).into()).await.refused(400, "BAD_REQUEST");
    }
    assert_eq!(site.dump().await, before);
}

#[tokio::test]
async fn thousands_of_params_in_one_call() {
    let site = Site::new().await;
    let experiment = site.server.experiment("models").await;
    let model = create(&site.server, json!({ "experiment_id": experiment })).await;
    let params: Vec<_> = (0..3_000).map(|n| json!({ "key": format!("p{n}"), "value": "v".repeat(n % 40) })).collect();
    log_params(&site.server, &model, params.clone().into()).await.ok();
    assert_eq!(by_key(&read(&site.server, &model).await["data"]["params"]).len(), 3_000);
    set_tags(&site.server, &model, params.into()).await.ok();
    assert_eq!(by_key(&read(&site.server, &model).await["info"]["tags"]).len(), 3_000);
}

#[tokio::test]
async fn pages_are_whole_and_in_order() {
    let site = Site::new().await;
    let server = &site.server;
    let experiments = [server.experiment("one").await, server.experiment("two").await];
    let mut expected = Vec::new();
    for number in 0..23_usize {
        let new = json!({
            "experiment_id": (experiments[number % 2]),
            "name": format!("n{number:02}"),
            "source_run_id": (["r", "s", ""][number % 3]),
            "params": [{ "key": "p", "value": "v" }, { "key": "big", "value": "b".repeat(2_000) }],
        });
        let model = create(server, new).await;
        let value = f64::from(u32::try_from(number * 7 % 23).unwrap());
        server.store.logged_model_log_metrics(&[point(&model, "m", (1, 1, value))]).await.unwrap();
        if number % 5 == 4 {
            call(server, "DELETE", &format!("/{model}"), json!({})).await.ok();
        } else {
            expected.push((format!("n{number:02}"), number % 3 == 0, number * 7 % 23));
        }
        // Ensures that the next models have a different creation time.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let newest: Vec<_> = expected.iter().rev().map(|(name, ..)| name.clone()).collect();
    let of_run: Vec<_> =
        expected.iter().rev().filter(|(_, of_run, _)| *of_run).map(|(name, ..)| name.clone()).collect();
    let mut by_metric = expected.clone();
    by_metric.sort_by_key(|(.., value)| *value);
    let by_metric: Vec<_> = by_metric.into_iter().map(|(name, ..)| name).collect();
    for size in [1, 2, 5, 18, 19, 20, 1_000] {
        for (more, expected) in [
            (json!({}), &newest),
            (json!({ "filter": "params.p = v" }), &newest),
            (json!({ "filter": "source_run_id = 'r'" }), &of_run),
            (json!({ "order_by": [{ "field_name": "metrics.m" }] }), &by_metric),
        ] {
            let mut search = more;
            search["experiment_ids"] = json!(experiments);
            search["max_results"] = json!(size);
            let pages = pages(server, search.clone()).await;
            assert_eq!(&pages.concat(), expected, "{search}");
            assert!(pages.iter().rev().skip(1).all(|page| page.len() == size), "{search}");
            assert_eq!(pages.len(), expected.len().div_ceil(size), "{search}");
        }
    }
}

#[tokio::test]
async fn a_page_begins_after_the_last_one_even_if_that_is_gone() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    let mut models = Vec::new();
    for number in 0..6 {
        models.push(create(server, json!({ "experiment_id": experiment, "name": number.to_string() })).await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for more in [json!({}), json!({ "filter": "name != 'x'" })] {
        let mut search = more;
        search["experiment_ids"] = json!([experiment]);
        search["max_results"] = json!(2);
        let first = call(server, "POST", "/search", search.clone()).await.ok();
        let last = first["models"][1]["info"]["model_id"].as_str().unwrap().to_owned();
        let next = first["models"][1]["info"]["name"].as_str().unwrap().parse::<i64>().unwrap() - 1;
        call(server, "DELETE", &format!("/{last}"), json!({})).await.ok();
        search["page_token"] = first["next_page_token"].clone();
        let second = call(server, "POST", "/search", search.clone()).await.ok();
        assert_eq!(second["models"][0]["info"]["name"], next.to_string());
        for (field, value) in [("filter", json!("name = 'y'")), ("max_results", json!(3))] {
            let mut other = search.clone();
            other[field] = value;
            let answer = call(server, "POST", "/search", other).await;
            assert_eq!(answer.status, if field == "filter" { 400 } else { 200 });
        }
    }
}

#[tokio::test]
async fn a_search_of_more_than_one_page_of_the_table() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    let experiment = experiment.as_str();
    join_all((0..16).map(|number| async move {
        let params: Vec<_> = (0..40).map(|n| json!({ "key": format!("p{n}"), "value": "v".repeat(3_000) })).collect();
        let new = json!({ "experiment_id": experiment, "name": format!("n{number:02}"), "params": params });
        create(server, new).await
    }))
    .await;
    let search = json!({ "experiment_ids": [experiment], "filter": "params.p39 LIKE 'v%'", "order_by": [{ "field_name": "name" }], "max_results": 7 });
    let expected: Vec<_> = (0..16).map(|number| format!("n{number:02}")).collect();
    assert_eq!(names(server, search).await, expected);
}

#[tokio::test]
async fn what_is_not_there_is_not_made() {
    let site = Site::new().await;
    let experiment = site.server.experiment("models").await;
    let model = create(&site.server, json!({ "experiment_id": experiment })).await.replace("m-0", "m-1");
    let before = site.dump().await;
    for id in [model.as_str(), "m-f47ac10b58cc4372a5670e02b2c3d479", "nope", "a%23b"] {
        for (method, path) in [
            ("GET", String::new()),
            ("DELETE", String::new()),
            ("DELETE", "/tags/t".to_owned()),
            ("GET", "/artifacts/directories".to_owned()),
        ] {
            call(&site.server, method, &format!("/{id}{path}"), json!({}))
                .await
                .refused(404, "RESOURCE_DOES_NOT_EXIST");
        }
        for value in ["v", &"v".repeat(3_000)] {
            let entries = json!([{ "key": "k", "value": value }]);
            set_tags(&site.server, id, entries.clone()).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
            log_params(&site.server, id, entries).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        }
        let finalize = json!({ "model_id": id, "status": 2 });
        call(&site.server, "PATCH", &format!("/{id}"), finalize).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }
    site.server.post("experiments/delete", json!({ "experiment_id": experiment })).await.ok();
    let after_deletion = site.dump().await;
    let new = json!({ "experiment_id": experiment });
    call(&site.server, "POST", "", new).await.refused_as_deleted();
    assert_eq!(site.dump().await, after_deletion);
    assert_eq!(before.len(), after_deletion.len());
}

#[tokio::test]
async fn malformed_requests_leave_no_trace() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    let model = create(server, json!({ "experiment_id": experiment, "params": [{ "key": "p", "value": "v" }] })).await;
    let before = site.dump().await;
    let odd = ["", "..", "a#b", "\u{0}", "é", "' OR 1", "m-", "$~", &"x".repeat(5_000)].map(Value::from);
    let odd: Vec<_> = odd.into_iter().chain([json!(7), json!([[]]), json!({ "a": {} }), json!([null])]).collect();
    for value in &odd {
        for search in [
            json!({ "experiment_ids": value }),
            json!({ "experiment_ids": [value] }),
            json!({ "experiment_ids": [experiment], "filter": value }),
            json!({ "experiment_ids": [experiment], "page_token": value }),
            json!({ "experiment_ids": [experiment], "order_by": [{ "field_name": value }] }),
            json!({ "experiment_ids": [experiment], "datasets": [{ "dataset_name": value, "dataset_digest": value }] }),
        ] {
            let answer = call(server, "POST", "/search", search.clone()).await;
            assert!([200, 400].contains(&answer.status), "{search} {answer:?}");
        }
        let finalize = json!({ "model_id": value, "status": 2 });
        let answer = call(server, "PATCH", &format!("/{model}"), finalize).await;
        assert!([400, 404].contains(&answer.status), "{value} {answer:?}");
    }
    let differing = json!([{ "key": "new", "value": "v" }, { "key": "p", "value": "w" }]);
    log_params(server, &model, differing).await.refused(400, "BAD_REQUEST");
    let twice = json!([{ "key": "a", "value": "v" }, { "key": "a", "value": "v" }]);
    log_params(server, &model, twice.clone()).await.refused(400, "BAD_REQUEST");
    for new in [
        json!({ "experiment_id": experiment, "params": twice }),
        json!({ "experiment_id": experiment, "tags": twice }),
        json!({ "experiment_id": experiment, "name": "a/b" }),
        json!({ "experiment_id": "x" }),
    ] {
        assert_eq!(call(server, "POST", "", new.clone()).await.status, 400, "{new}");
    }
    assert_eq!(site.dump().await, before);
}

/// A forged token is either rejected or interpreted as some position. It never causes a request
/// that the table rejects.
#[tokio::test]
async fn forged_tokens_do_no_harm() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("models").await;
    for name in ["a", "b"] {
        create(server, json!({ "experiment_id": experiment, "name": name })).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let search = json!({ "experiment_ids": [experiment], "max_results": 1 });
    let page = call(server, "POST", "/search", search.clone()).await.ok();
    let token = base64_text(page["next_page_token"].as_str().unwrap());
    let begin = token.find("\"k\":").unwrap();
    for key in [
        "[]",
        r#"[["d",{"i":9223372036854775807}],["a",{"t":"\u0000#"}]]"#,
        r#"[["a",{"t":"x"}]]"#,
        r#"[["d",{"i":5}],["a",{"t":"LONG"}]]"#,
    ] {
        let key = key.replace("LONG", &"x".repeat(3_000));
        let forged = format!("{}\"k\":{key}}}", &token[..begin]);
        let mut search = search.clone();
        search["page_token"] = text_base64(&forged).into();
        let answer = call(server, "POST", "/search", search).await;
        assert_eq!(answer.status, 200, "{forged} {answer:?}");
    }
}

fn base64_text(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
        .fold(String::new(), |bits, digit| bits + &format!("{digit:06b}"));
    let bytes =
        bits.as_bytes().chunks_exact(8).map(|bits| u8::from_str_radix(std::str::from_utf8(bits).unwrap(), 2).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

fn text_base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = text.bytes().fold(String::new(), |bits, byte| bits + &format!("{byte:08b}"));
    while !bits.len().is_multiple_of(24) {
        // Spaces are added after the JSON until its length is a multiple of three bytes, so that
        // the encoded token needs no padding.
        bits.push_str("00100000");
    }
    let digits = bits
        .as_bytes()
        .chunks_exact(6)
        .map(|bits| DIGITS[usize::from_str_radix(std::str::from_utf8(bits).unwrap(), 2).unwrap()]);
    String::from_utf8(digits.collect()).unwrap()
}

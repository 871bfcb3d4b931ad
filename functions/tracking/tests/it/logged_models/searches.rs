//! Searches of logged models, and their page tokens.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use super::{call, create, names, pages, point};
use crate::server::Site;

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

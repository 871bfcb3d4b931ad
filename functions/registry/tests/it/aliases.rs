//! Aliases and stages of models with few and with many versions.

use key_schema::IndexEntry;
use key_schema::index::AliasedVersions;
use serde_json::json;
use test_site::all_troubles;

use crate::server::{Site, text};

#[tokio::test]
async fn every_alias_is_found_however_many_there_are() {
    let site = Site::new().await;
    let server = &site.server;
    server.model("m").await;
    for number in 1..=60 {
        server.version("m").await;
        server.set_alias("m", &format!("a{number}"), number).await.ok();
        server.set_alias("m", &format!("b{number}"), 1).await.ok();
    }
    for round in ["before", "after"] {
        let name = if round == "before" { "m" } else { "renamed" };
        for number in 1..=60 {
            let found = server.by_alias(name, &format!("a{number}")).await.ok();
            assert_eq!(found["model_version"]["version"], number.to_string());
        }
        let first = server.by_alias(name, "b60").await.ok()["model_version"].clone();
        assert_eq!((text(&first, "version"), first["aliases"].as_array().unwrap().len()), ("1".to_owned(), 61));
        if round == "before" {
            server.rename("m", "renamed").await.ok();
        }
    }
    for number in 1..=60 {
        for alias in ["a", "b"] {
            let alias = json!({ "name": "renamed", "alias": format!("{alias}{number}") });
            server.delete("registered-models/alias", alias).await.ok();
        }
    }
    let listed = site.dump().await.into_values().filter(|item| item.get(AliasedVersions::INDEX.sort).is_some()).count();
    assert_eq!(listed, 1, "the model itself");
}

/// Checks that searches by model and by run return the same aliases as reading the version.
#[tokio::test]
async fn a_search_shows_aliases() {
    let site = Site::new().await;
    let server = &site.server;
    for name in ["a", "b", "plain"] {
        server.model(name).await;
        for _ in 0..2 {
            server.version_of_run(name, "r").await;
        }
    }
    server.set_alias("a", "champion", 2).await.ok();
    server.set_alias("a", "older", 1).await.ok();
    server.set_alias("a", "best", 2).await.ok();
    server.set_alias("b", "champion", 1).await.ok();
    for round in ["before", "renamed", "moved"] {
        match round {
            "renamed" => drop(server.rename("a", "aa").await.ok()),
            "moved" => drop(server.set_alias("b", "champion", 2).await.ok()),
            _ => {}
        }
        for filter in ["", "run_id = 'r'", "run_id IN ('r', 's') AND version_number > 0"] {
            let found = server.get("model-versions/search", &[("filter", filter)]).await.ok();
            let versions = found["model_versions"].as_array().unwrap();
            assert_eq!(versions.len(), 6, "{filter}");
            for version in versions {
                let number = text(version, "version").parse().unwrap();
                let read = server.version_at(&text(version, "name"), number).await.ok();
                assert_eq!(*version, read["model_version"], "{filter}, {round}");
            }
            let aliased = versions.iter().filter(|version| version["aliases"].is_array()).count();
            assert_eq!(aliased, 3, "{filter}, {round}");
        }
    }
    let found = server.get("model-versions/search", &[("filter", "run_id = 'r' AND name = 'aa'")]).await.ok();
    assert_eq!(found["model_versions"][0]["aliases"], json!(["best", "champion"]));
}

/// Archives more versions than fit into one transaction.
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_versions_are_archived() {
    let site = Site::new().await;
    let server = &site.other;
    server.model("m").await;
    let newest: u32 = if all_troubles() { 200 } else { 120 };
    for number in 1..=newest {
        server.version("m").await;
        if number < newest {
            server.transition("m", number, "Production", false).await.ok();
        }
    }
    // If the transition is interrupted, some versions are archived, and the others are unchanged.
    let impatient = site.impatient();
    site.faults.cut_off_at(5);
    assert_ne!(impatient.transition("m", newest, "Production", true).await.status, 200);
    site.faults.work_again();
    let latest = |answer: serde_json::Value| {
        let versions = answer["registered_model"]["latest_versions"].as_array().unwrap().clone();
        versions.iter().map(|version| (text(version, "current_stage"), text(version, "version"))).collect::<Vec<_>>()
    };
    let owned = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect::<Vec<_>>();
    let half_done = latest(server.model_of("m").await.ok());
    let [last, new] = [newest - 1, newest].map(|number| number.to_string());
    assert_eq!(half_done, owned(&[("Archived", "90"), ("Production", last.as_str()), ("None", new.as_str())]));
    server.transition("m", newest, "Production", true).await.ok();
    let done = latest(server.model_of("m").await.ok());
    assert_eq!(done, owned(&[("Archived", last.as_str()), ("Production", new.as_str())]));
    let found = server.versions("name = 'm'").await;
    assert_eq!(found.len(), usize::try_from(newest).unwrap());
    for number in [1, 90, 91, newest - 1] {
        assert_eq!(server.version_at("m", number).await.ok()["model_version"]["current_stage"], "Archived");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_of_each_stage_is_that_of_all_versions() {
    let site = Site::new().await;
    let server = &site.server;
    site.faults.lose_answer_every(11);
    server.model("m").await;
    let mut stages = std::collections::BTreeMap::new();
    let names = ["None", "Staging", "Production", "Archived"];
    for step in 0..150_u32 {
        // A deterministic sequence of transitions that covers every stage and every version.
        let (chosen, stage) = ((step * 7) % 12 + 1, names[(step as usize * 5 + step as usize / 4) % 4]);
        match step % 5 {
            0 => {
                let number = server.version("m").await;
                stages.insert(number, "None");
            }
            4 => {
                let version = json!({ "name": "m", "version": chosen.to_string() });
                let there = stages.remove(&chosen).is_some();
                let status = server.delete("model-versions/delete", version).await.status;
                assert_eq!(status, if there { 200 } else { 404 });
            }
            _ => {
                let archive = step % 3 == 0 && matches!(stage, "Staging" | "Production");
                let answer = server.transition("m", chosen, stage, archive).await;
                if !stages.contains_key(&chosen) {
                    answer.missing();
                    continue;
                }
                answer.ok();
                if archive {
                    stages.values_mut().filter(|held| **held == stage).for_each(|held| *held = "Archived");
                }
                stages.insert(chosen, stage);
            }
        }
        let mut expected = std::collections::BTreeMap::new();
        for (number, stage) in &stages {
            expected.insert((*stage).to_owned(), number.to_string());
        }
        let model = site.other.model_of("m").await.ok();
        let latest = model["registered_model"]["latest_versions"].as_array().cloned().unwrap_or_default();
        let found: std::collections::BTreeMap<_, _> =
            latest.iter().map(|version| (text(version, "current_stage"), text(version, "version"))).collect();
        assert_eq!(found, expected, "{step}");
    }
}

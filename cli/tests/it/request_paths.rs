//! Properties that the paths of all functions share. Each row of the route tables is requested.

use std::collections::BTreeSet;

use access::ConnectionInfo;
use artifact_store::ArtifactStore;
use axum::Router;
use axum::body::{Body, to_bytes};
use domain::{EndpointInfo, Environment, UiFiles};
use domains::DOMAINS;
use embedded_engine::Engine;
use http::header::{ALLOW, CONTENT_TYPE, STRICT_TRANSPORT_SECURITY};
use http::{HeaderMap, Request, StatusCode};
use table::Table;
use tower::ServiceExt;

use crate::test_server::{TABLE, all_as_one, with_walker};

/// Returns all domains, as clients reach them, over an empty table.
async fn everything(directory: &std::path::Path) -> Router {
    let table = Table::new(Engine::memory().unwrap().client(), TABLE);
    table.create_if_missing().await.unwrap();
    let around = with_walker(&table, ArtifactStore::in_directory(directory), all_as_one()).await;
    let ui = UiFiles { directory: Some(directory.to_owned()), bucket: None };
    domain::mount(&DOMAINS, &[], &Environment { ui: Some(ui), ..around }).await.unwrap()
}

/// Returns the method and path of each row.
fn rows() -> BTreeSet<(&'static str, String)> {
    let endpoints = DOMAINS.iter().flat_map(|domain| (domain.endpoints)());
    let of = |endpoint: EndpointInfo| endpoint.paths.into_iter().map(move |path| (endpoint.method, path));
    let rows = endpoints.flat_map(of).filter(|(_, path)| !path.starts_with("/static-files/"));
    let file = ("GET", "/static-files/absent.js".to_owned());
    let named = |part: &str| match part.split_once('{') {
        Some((before, _)) => format!("{before}x"),
        None => part.to_owned(),
    };
    let with_names = |path: String| path.split('/').map(named).collect::<Vec<_>>().join("/");
    rows.chain([file]).map(|(method, path)| (method, with_names(path))).collect()
}

async fn send(app: &Router, method: &str, path: &str) -> (StatusCode, HeaderMap, Vec<u8>) {
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    let response = app.clone().oneshot(request.body(Body::from("{}")).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
}

#[tokio::test]
async fn every_row_answers_below_a_base_url_that_ends_in_a_slash() {
    let directory = tempfile::tempdir().unwrap();
    let app = everything(directory.path()).await;
    for (method, path) in rows() {
        let (status, headers, body) = send(&app, method, &path).await;
        // The page for unknown paths begins like this, and no other page does.
        let is_known = !body.starts_with(b"<!doctype html>\n<html lang=en>");
        let is_answered = ![StatusCode::METHOD_NOT_ALLOWED, StatusCode::INTERNAL_SERVER_ERROR].contains(&status);
        assert!(is_known && is_answered, "{method} {path}: {status}");
        let (below, of_below, _) = send(&app, method, &format!("/{path}")).await;
        assert_eq!((below, of_below.get(CONTENT_TYPE)), (status, headers.get(CONTENT_TYPE)), "{method} /{path}");
    }
}

#[tokio::test]
async fn every_row_is_led_to_where_slashes_are_doubled_inside() {
    let directory = tempfile::tempdir().unwrap();
    let app = everything(directory.path()).await;
    for (method, path) in rows().into_iter().filter(|(_, path)| path.contains("/mlflow/")) {
        let doubled = path.replacen("/mlflow/", "//mlflow///", 1);
        let (status, headers, _) = send(&app, method, &format!("{doubled}?a=//b")).await;
        // MLflow serves these paths with FastAPI, which does not redirect.
        let is_fastapi = path.starts_with("/gateway/")
            || ["assistant/", "mcp-servers", "skills"].iter().any(|part| path.contains(&format!("/3.0/mlflow/{part}")));
        if is_fastapi {
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {doubled}");
            continue;
        }
        assert_eq!(status, StatusCode::PERMANENT_REDIRECT, "{method} {doubled}");
        assert_eq!(headers["location"], format!("{path}?a=//b"));
    }
}

#[tokio::test]
async fn every_row_says_which_methods_its_path_has() {
    let directory = tempfile::tempdir().unwrap();
    let app = everything(directory.path()).await;
    for (method, path) in rows() {
        let (status, headers, body) = send(&app, "OPTIONS", &path).await;
        let is_api = path.starts_with("/api/") || path.starts_with("/ajax-api/");
        let expected = if is_api { StatusCode::NO_CONTENT } else { StatusCode::OK };
        assert_eq!((status, body.len()), (expected, 0), "{path}");
        let allowed: Vec<_> = headers[ALLOW].to_str().unwrap().split(',').map(str::trim).collect();
        assert!(allowed.contains(&method) && allowed.contains(&"OPTIONS"), "{method} {path}: {allowed:?}");
    }
    assert_eq!(send(&app, "OPTIONS", "/api/2.0/mlflow/nothing").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn every_get_has_a_head() {
    let directory = tempfile::tempdir().unwrap();
    let app = everything(directory.path()).await;
    for (_, path) in rows().into_iter().filter(|(method, _)| *method == "GET") {
        let path = format!("{path}?run_id=x&experiment_id=0&path=x&name=x&experiment_ids=0&dataset_id=x&version=1");
        let (status, headers, _) = send(&app, "GET", &path).await;
        let (of_head, headers_of_head, body) = send(&app, "HEAD", &path).await;
        let kind = |headers: &HeaderMap| headers.get(CONTENT_TYPE).cloned();
        assert_eq!((of_head, kind(&headers_of_head), body.len()), (status, kind(&headers), 0), "{path}");
    }
}

#[tokio::test]
async fn a_server_with_users_keeps_browsers_to_tls() {
    let directory = tempfile::tempdir().unwrap();
    let app = everything(directory.path()).await;
    for (path, is_secure) in [("/health", true), ("/nothing", true), ("//api//nothing", true), ("/health", false)] {
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectionInfo { is_secure, ..ConnectionInfo::default() });
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers().contains_key(STRICT_TRANSPORT_SECURITY), is_secure, "{path}");
    }
}

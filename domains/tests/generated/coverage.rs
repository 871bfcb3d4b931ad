//! `docs/reference/coverage.md`, generated from the routes of all functions and from the list of MLflow's
//! endpoints. `UPDATE_DOCS=1` writes it again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use domains::DOMAINS;

use crate::{check, repository};

const HEAD: &str = "\
# Coverage

Generated from the route tables and from `docs/reference/mlflow-endpoints.tsv`, the list of the endpoints of MLflow 3.17 and 3.18, by `make docs`; do not
edit. An endpoint that is not built answers as MLflow answers for a path it does not know. Most stand under `/ajax-api/…` as well
as under `/api/…`.

";

struct Endpoint<'a> {
    method: &'a str,
    path: &'a str,
    domain: &'a str,
}

/// Method and canonical path of every row of every domain.
fn built() -> BTreeSet<(String, String)> {
    let endpoints = DOMAINS.iter().flat_map(|domain| (domain.endpoints)());
    // The list of MLflow's endpoints does not say which part of a path may hold slashes.
    endpoints.map(|endpoint| (endpoint.method.to_owned(), endpoint.paths[0].replace("{*", "{"))).collect()
}

fn markdown(endpoints: &[Endpoint], built: &BTreeSet<(String, String)>) -> String {
    let is_built = |endpoint: &Endpoint| built.contains(&(endpoint.method.to_owned(), endpoint.path.to_owned()));
    let mut domains: Vec<&str> = Vec::new();
    for endpoint in endpoints {
        if !domains.contains(&endpoint.domain) {
            domains.push(endpoint.domain);
        }
    }
    domains.sort_unstable();
    let mut text = String::from(HEAD);
    text.push_str("| domain | endpoints | built |\n|---|---:|---:|\n");
    for domain in &domains {
        let all = endpoints.iter().filter(|endpoint| endpoint.domain == *domain).count();
        let done = endpoints.iter().filter(|endpoint| endpoint.domain == *domain && is_built(endpoint)).count();
        let _ = writeln!(text, "| {domain} | {all} | {done} |");
    }
    let done = endpoints.iter().filter(|endpoint| is_built(endpoint)).count();
    let _ = writeln!(text, "| **all** | **{}** | **{done}** |", endpoints.len());
    for domain in &domains {
        let _ = write!(text, "\n## {domain}\n\n| method | path | |\n|---|---|---|\n");
        for endpoint in endpoints.iter().filter(|endpoint| endpoint.domain == *domain) {
            let state = if is_built(endpoint) { "built" } else { "missing" };
            let _ = writeln!(text, "| {} | `{}` | {state} |", endpoint.method, endpoint.path);
        }
    }
    text
}

/// Pages that MLflow does not have.
const OWN: [&str; 2] = ["/signin", "/tokens"];

#[test]
fn the_coverage_table_is_up_to_date() {
    let list = fs::read_to_string(repository("docs/reference/mlflow-endpoints.tsv")).unwrap();
    let endpoints: Vec<_> = list
        .lines()
        .skip(1)
        .map(|line| {
            let columns: Vec<_> = line.split('\t').collect();
            Endpoint { method: columns[0], path: columns[1], domain: columns[3] }
        })
        .collect();
    let built = built();
    for (method, path) in &built {
        let known = endpoints.iter().any(|endpoint| endpoint.method == method && endpoint.path == path);
        assert!(known || OWN.contains(&path.as_str()), "{method} {path} is no endpoint of MLflow");
    }
    let expected = markdown(&endpoints, &built);
    check("docs/reference/coverage.md", &expected);
}

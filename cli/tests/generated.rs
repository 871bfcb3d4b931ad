//! `docs/coverage.md`, generated from the routes of all functions and from the list of MLflow's endpoints.
//! `UPDATE_DOCS=1` writes it anew.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const HEAD: &str = "\
# Coverage

Generated from the route tables and from `docs/mlflow-endpoints.tsv`, the list of the endpoints of MLflow 3.17 and 3.18, by `make docs`; do not
edit. An endpoint that is not built answers as MLflow answers for a path it does not know. Most stand under `/ajax-api/…` as well
as under `/api/…`.

";

struct Endpoint<'a> {
    method: &'a str,
    path: &'a str,
    domain: &'a str,
}

fn repository(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// Method and canonical path of every row of every function.
fn built() -> BTreeSet<(String, String)> {
    let tracking = tracking::routes().iter().map(|route| (route.method, route.full_paths())).collect::<Vec<_>>();
    let evaluation = evaluation::routes().iter().map(|route| (route.method, route.full_paths())).collect::<Vec<_>>();
    let registry = registry::routes().iter().map(|route| (route.method, route.full_paths())).collect::<Vec<_>>();
    let traces = traces::routes().iter().map(|route| (route.method, route.full_paths())).collect::<Vec<_>>();
    let artifacts = artifacts::routes().iter().map(|route| (route.method, route.full_paths())).collect::<Vec<_>>();
    let graphql = graphql::routes().iter().map(|route| (route.method, route.full_paths())).collect::<Vec<_>>();
    let ui = ui::PATHS.map(|path| ("GET", vec![path.to_owned()]));
    let routes =
        tracking.into_iter().chain(evaluation).chain(registry).chain(traces).chain(artifacts).chain(graphql).chain(ui);
    // The list of MLflow's endpoints does not say which part of a path may hold slashes.
    routes.map(|(method, mut paths)| (method.to_owned(), paths.swap_remove(0).replace("{*", "{"))).collect()
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

#[test]
fn the_coverage_table_is_up_to_date() {
    let list = fs::read_to_string(repository("docs/mlflow-endpoints.tsv")).unwrap();
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
        assert!(known, "{method} {path} is no endpoint of MLflow");
    }
    let expected = markdown(&endpoints, &built);
    let path = repository("docs/coverage.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/coverage.md is not what the code says; run `make docs`");
}

//! Checks that `docs/reference/limits.md` describes the limits of every route's response and reads.

use std::collections::BTreeSet;
use std::fs;

use domain::Domain;
use domains::DOMAINS;

use crate::repository;

/// Returns the method and canonical path of every route, except those of the user interface, which
/// only serves files.
fn routes() -> BTreeSet<(String, String)> {
    let of_files = |domain: &&&Domain| domain.function.name == "ui";
    let domains = DOMAINS.iter().filter(|domain| !of_files(domain));
    let endpoints = domains.flat_map(|domain| (domain.endpoints)());
    endpoints.map(|endpoint| (endpoint.method.to_owned(), endpoint.paths[0].clone())).collect()
}

/// Returns the cells of each row of a Markdown table whose second cell is code. This excludes the
/// table's header.
fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    text.lines().filter(|line| line.starts_with('|') && line.contains("| `/")).map(cells).collect()
}

#[test]
fn every_route_says_what_bounds_its_answer_and_its_reads() {
    let text =
        fs::read_to_string(repository("docs/reference/limits.md")).expect("docs/reference/limits.md can be read");
    let mut described = BTreeSet::new();
    for row in rows(&text) {
        let [method, path, answer, reads] = row.as_slice() else {
            panic!("a row has the wrong number of cells: {row:?}")
        };
        assert!(!answer.is_empty() && !reads.is_empty(), "a route lacks its limits: {row:?}");
        let route = (method.clone(), path.trim_matches('`').to_owned());
        assert!(described.insert(route), "a route has two rows: {row:?}");
    }
    let routes = routes();
    assert_eq!(routes.difference(&described).collect::<Vec<_>>(), Vec::<&(String, String)>::new(), "not described");
    assert_eq!(described.difference(&routes).collect::<Vec<_>>(), Vec::<&(String, String)>::new(), "no such route");
}

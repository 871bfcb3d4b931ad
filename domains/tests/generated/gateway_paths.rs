//! The function to which the gateway sends the requests of each route.

use std::collections::BTreeMap;

use domain::Function;
use domains::{DOMAINS, functions};

/// Returns the function to which the gateway sends a path: the one with this exact path, otherwise
/// the one with the longest matching pattern.
fn function_of(path: &str) -> &'static str {
    let fits = |pattern: &str| match pattern.split_once("{*path}") {
        // A greedy path parameter does not match an empty text.
        Some((before, _)) => path.strip_prefix(before).is_some_and(|rest| !rest.is_empty()),
        None => pattern == path,
    };
    let patterns = functions().flat_map(|function| function.paths.iter().map(move |pattern| (*pattern, function.name)));
    patterns
        .filter(|(pattern, _)| fits(pattern))
        .max_by_key(|(pattern, _)| (!pattern.ends_with("{*path}"), pattern.len()))
        .map_or("", |(_, name)| name)
}

#[test]
fn each_route_is_sent_to_the_function_that_has_it() {
    let mut astray = Vec::new();
    for domain in DOMAINS {
        let endpoints = (domain.endpoints)().into_iter().map(|endpoint| endpoint.paths);
        let unavailable = (domain.unavailable)().into_iter().map(|endpoint| endpoint.paths);
        for paths in endpoints.chain(unavailable) {
            for path in &paths {
                let path = path.replace(['{', '*', '}'], "");
                if function_of(&path) != domain.function.name {
                    astray.push(format!("{path} of {} goes to {:?}", domain.function.name, function_of(&path)));
                }
            }
        }
    }
    assert_eq!(astray, Vec::<String>::new());
}

#[test]
fn each_name_and_each_pattern_is_of_one_function() {
    let mut owners = BTreeMap::new();
    for function in functions() {
        let claims = [function.name, function.resource].into_iter().chain(function.paths.iter().copied());
        for claim in claims {
            assert_eq!(owners.insert(claim, function.name), None, "{claim} is claimed twice");
        }
    }
    assert!(owners.contains_key(Function::CATCH_ALL_PATH));
}

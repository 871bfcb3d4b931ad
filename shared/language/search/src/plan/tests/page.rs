//! Checks that the numbers in `docs/design/search.md` match the planner.

use super::Known::{self, Every, Whole};
use super::plans::plan;

/// The beginning of a row in a table of the page, and the searches that the row describes. Each
/// search has a filter, an order, and the known facts about its lists.
type Row<'a> = (&'a str, &'a [(&'a str, &'a [&'a str], &'a [(&'a str, Known)])]);

const PAGE: &str = include_str!("../../../../../../docs/design/search.md");

const ROWS: &[Row] = &[
    ("none |", &[("", &[], &[])]),
    (
        "`params.a = 'x'`, `LIKE 'x'`",
        &[
            ("params.a = 'x'", &[], &[("params.`a` = 'x'", Every(9))]),
            ("params.a LIKE 'x'", &[], &[("params.`a` = 'x'", Every(9))]),
        ],
    ),
    ("`status = 'RUNNING'`", &[("status = 'RUNNING'", &[], &[("status = 'RUNNING'", Every(9))])]),
    ("`tags.env = 'x'`", &[("tags.env = 'x'", &[], &[("tags.env = 'x'", Every(9))])]),
    ("`attributes.run_name = 'x'`", &[("run_name = 'x'", &[], &[("name = 'x'", Every(9))])]),
    ("one of them, 40 runs", &[("params.a = 'x'", &[], &[("params.`a` = 'x'", Whole(40))])]),
    (
        "`run_name ILIKE '%nightly%'`",
        &[("run_name ILIKE '%nightly%'", &[], &[]), ("run_name ILIKE '% nightly runs %'", &[], &[])],
    ),
    (
        "`metrics.acc > 0.9` and other",
        &[
            ("metrics.acc > 0.9", &[], &[("metrics.`acc` in [0.9, ..]", Every(1))]),
            ("metrics.acc > 0.9 AND metrics.acc <= 0.95", &[], &[("metrics.`acc` in [0.9, 0.95]", Every(1))]),
        ],
    ),
    ("`params.a != 'x'`", &[("params.a != 'x'", &[], &[("params.`a` of any value", Every(1))])]),
    ("`start_time`", &[("start_time > 5", &[], &[])]),
    ("a contradiction", &[("metrics.acc > 2 AND metrics.acc < 1", &[], &[])]),
    ("`start_time DESC`", &[("", &["start_time DESC"], &[])]),
    ("`start_time ASC`", &[("", &["start_time"], &[]), ("", &["start_time DESC", "run_name"], &[])]),
    ("`metrics.acc DESC`", &[("", &["metrics.acc DESC"], &[("runs", Every(1))])]),
    ("`metrics.acc ASC`", &[("", &["metrics.acc"], &[("runs", Every(1))])]),
    ("`status` |", &[("", &["status"], &[("runs", Every(1))]), ("", &["status DESC"], &[("runs", Every(1))])]),
    (
        "`run_name`, `params.a`",
        &[
            ("", &["run_name"], &[("runs", Every(1))]),
            ("", &["params.a"], &[("runs", Every(1))]),
            ("", &["tags.env"], &[("runs", Every(1))]),
        ],
    ),
    ("`end_time` |", &[("", &["end_time"], &[("runs", Every(1))]), ("", &["end_time DESC"], &[("runs", Every(1))])]),
    ("one of these, with a predicate", &[("params.a = 'x'", &["metrics.acc DESC"], &[("params.`a` = 'x'", Every(9))])]),
];

/// Formats the smallest and the largest number as `102 to 205`, or as `102` if they are equal.
fn range(mut figures: Vec<f64>) -> String {
    figures.sort_by(f64::total_cmp);
    let [least, most] = [figures[0], figures[figures.len() - 1]].map(|figure| format!("{figure:.0}"));
    if least == most { least } else { format!("{least} to {most}") }
}

#[test]
fn the_page_says_what_the_planner_estimates() {
    let mut wrong = Vec::new();
    for (row, searches) in ROWS {
        let costs: Vec<_> = searches.iter().map(|(filter, order, known)| plan(filter, order, known).cost).collect();
        let units = range(costs.iter().map(|cost| cost.units).collect());
        let requests = range(costs.iter().map(|cost| cost.requests).collect());
        let found: Vec<_> = PAGE.lines().filter(|line| line.starts_with(&format!("| {row}"))).collect();
        let &[line] = found.as_slice() else { panic!("{} rows begin with {row}", found.len()) };
        if !line.ends_with(&format!("| {units} | {requests} |")) {
            wrong.push(format!("{line}\n  estimated: {units} | {requests}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_with_plain_figures_is_held() {
    let runs = PAGE.split("## Indexed fields").next().unwrap();
    for line in runs.lines() {
        let mut cells = line.trim_matches('|').rsplit('|').map(str::trim);
        let (requests, units) = (cells.next().unwrap_or(""), cells.next().unwrap_or(""));
        let plain = |cell: &str| cell.split(" to ").all(|figure| figure.parse::<u32>().is_ok());
        if plain(requests) && plain(units) {
            assert!(ROWS.iter().any(|(row, _)| line.starts_with(&format!("| {row}"))), "{line}");
        }
    }
}

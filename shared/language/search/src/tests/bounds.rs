//! Tests of the limits on the size of a search, and tests that parsing takes time linear in the
//! size.

use std::time::Duration;

use mlflow_api::ErrorCode;

use super::owned;
use crate::{
    CommonFields, ModelOrderBy, RunOptions, RunOrder, parse_dataset_search, parse_experiment_search,
    parse_model_filter, parse_model_order, parse_registered_model_search, parse_run_filter, parse_run_search,
    parse_version_search,
    syntax::{self, lexer},
    trigram_tokens,
};

type Read = fn(&str, &[String]) -> mlflow_api::Result<()>;

#[test]
fn what_is_too_long_is_refused_by_every_search() {
    let repeated = |comparison: &str, count| vec![comparison; count].join(" AND ");
    let long = format!("name = '{}'", "x".repeat(256 << 10));
    let too_long = format!("The filter string has {} bytes. At most 262144 are allowed.", long.len());
    let many = |count| format!("The filter string has {count} comparisons. At most 500 are allowed.");
    let pattern = format!("'{}'", "x".repeat(50_001));
    let too_complex = "A pattern of LIKE or ILIKE has at most 50000 bytes.";
    let clauses = owned(&vec!["name"; 101]);
    let too_many_clauses = "`order_by` has 101 clauses. At most 100 are allowed.";
    let clause = owned(&["x".repeat(9_000).as_str()]);
    let too_long_clause = "A clause of `order_by` has 9000 bytes. At most 8192 are allowed.";

    let searches: [(Read, &str); 6] = [
        (|filter, order| parse_run_search(filter, order).map(drop), "run_name"),
        (|filter, order| parse_experiment_search(filter, order).map(drop), "name"),
        (|filter, order| parse_dataset_search(filter, order).map(drop), "name"),
        (|filter, order| parse_registered_model_search(filter, order).map(drop), "name"),
        (|filter, order| parse_version_search(filter, order).map(drop), "name"),
        (
            |filter, order| {
                let clause = |field: &String| ModelOrderBy {
                    field: field.clone(),
                    ascending: true,
                    dataset_name: String::new(),
                    dataset_digest: String::new(),
                };
                let clauses: Vec<_> = order.iter().map(clause).collect();
                parse_model_filter(filter, &[]).and_then(|_| parse_model_order(&clauses)).map(drop)
            },
            "name",
        ),
    ];
    for (read, name) in searches {
        let refused = |filter: &str, order: &[String]| {
            let error = read(filter, order).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidParameterValue);
            error.message
        };
        assert_eq!(refused(&long, &[]), too_long);
        assert_eq!(refused(&repeated("tags.a = 'x'", 501), &[]), many(501));
        assert_eq!(refused(&format!("{name} LIKE {pattern}"), &[]), too_complex);
        assert_eq!(refused(&format!("tags.a ILIKE {pattern}"), &[]), too_complex);
        assert_eq!(refused("", &clauses), too_many_clauses);
        assert_eq!(refused("", &clause), too_long_clause);
        read(&repeated("tags.a != 'x'", 500), &[]).unwrap();
    }
    let datasets = vec![("a".to_owned(), "b".to_owned()); 101];
    let error = parse_model_filter("", &datasets).unwrap_err();
    assert_eq!(error.message, "`datasets` has 101 entries. At most 100 are allowed.");
}

/// The limit on nesting depth is that of `sqlparse`.
#[test]
fn a_text_of_too_many_levels_is_refused() {
    let filter = |levels: usize| format!("run_id IN {}'a'{}", "(".repeat(levels), ")".repeat(levels));
    let message = |levels| parse_run_filter(&filter(levels)).unwrap_err().message;
    assert!(message(100).starts_with("While parsing a list in the query"), "{}", message(100));
    assert_eq!(message(101), format!("Error on parsing filter '{}'", filter(101)));
    assert!(syntax::statements(&format!("x{}1{}", "[".repeat(110), "]".repeat(110))).is_none());
    // An unmatched parenthesis does not open a level.
    assert!(syntax::statements(&"(".repeat(200)).is_some());
}

/// Returns the processor time of this thread, which excludes the time that other programs use.
fn now() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).unwrap()
}

/// Returns the shortest duration of several attempts, which is the least affected by noise.
fn fastest(work: impl Fn()) -> Duration {
    let attempt = || {
        let began = now();
        work();
        now().saturating_sub(began)
    };
    (0..5).map(|_| attempt()).min().unwrap_or_default()
}

/// Checks that grouping takes at most a few times as long as tokenizing, which passes over the text
/// once, regardless of the text.
#[test]
fn reading_is_linear() {
    let texts: [fn(usize) -> String; 8] = [
        |size| "a.b = 1 AND ".repeat(size / 2),
        |size| "a = ".repeat(size) + "1",
        |size| format!("a IN ({})", "'x', ".repeat(size)),
        |size| "a.".repeat(size),
        |size| format!("{}{}", "(".repeat(size), " )".repeat(size)),
        |size| "f(x) ".repeat(size / 2),
        |size| format!("x{} DESC", " ".repeat(3 * size)),
        |size| "/* c */ ".repeat(size),
    ];
    let texts = texts.map(|text| text(2_400));
    let of_all = |read: fn(&str)| texts.iter().map(|text| fastest(|| read(text))).sum::<Duration>();
    let (split, grouped) = (of_all(|text| drop(lexer::tokens(text))), of_all(|text| drop(syntax::statements(text))));
    assert!(grouped < split * 6, "{split:?}, {grouped:?}");
}

/// Checks that choosing the tokens to look up takes at most a few times as long as computing all
/// tokens.
#[test]
fn planning_a_long_pattern_is_linear() {
    let text: String = (0..16_000).filter_map(|code| char::from_u32(0x4e00 + code)).collect();
    let pattern = format!("%{text}%");
    let filter = parse_run_filter(&format!("run_name LIKE '{pattern}'")).unwrap();
    let pattern = crate::LikePattern::like(&pattern).unwrap();
    let terms = fastest(|| drop(trigram_tokens::of_pattern(&pattern)));
    let planned =
        fastest(|| drop(RunOptions::of(&filter.asks(), &RunOrder::default().sorting(), &CommonFields::default())));
    assert!(planned < terms * 12, "{terms:?}, {planned:?}");
}

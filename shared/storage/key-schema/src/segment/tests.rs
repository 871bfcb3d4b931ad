//! Encoded segments can be parsed back, and keep the order of their values.

use proptest::prelude::*;

use super::*;
use crate::{Name, TextSegment, Value};

fn written(segment: &impl Segment) -> String {
    segment.text()
}

proptest! {
    #[test]
    fn names_come_back_and_hold_no_separator(name in "\\PC{0,40}|[ !-/a-c#$]{0,40}|[\\x00-\\x7f]{0,20}") {
        let key = written(&Name(name.clone()));
        prop_assert!(!key.contains('#'));
        prop_assert_eq!(Name::read(&key), Some(Name(name)));
    }

    #[test]
    fn names_keep_their_order_before_a_separator(a in "[ !-&a-c\u{e9}]{0,6}", b in "[ !-&a-c\u{e9}]{0,6}") {
        let with_separator = |name: &str| written(&Name::from(name)) + "#zzz";
        prop_assert_eq!(a.cmp(&b), with_separator(&a).cmp(&with_separator(&b)));
    }

    #[test]
    fn long_names_are_cut_and_still_told_apart(name in "[ a\u{1F600}]{400,900}", more in "[a-z ]{1,3}") {
        let longer = format!("{name}{more}");
        let (key, other) = (written(&Name(name)), written(&Name(longer)));
        prop_assert!(key.len() <= 700 && other.len() <= 700);
        prop_assert_ne!(key, other);
    }

    #[test]
    fn a_beginning_begins_every_text_that_begins_so(text in "[ -~\u{e9}]{0,300}", more in "[ -~]{0,300}") {
        let beginning = Value(text.clone()).beginning();
        prop_assert!(written(&Value(text + &more)).starts_with(&beginning));
    }

    #[test]
    fn integers_keep_their_order(a: i64, b: i64) {
        prop_assert_eq!(a.cmp(&b), written(&Ascending(a)).cmp(&written(&Ascending(b))));
        prop_assert_eq!(b.cmp(&a), written(&Descending(a)).cmp(&written(&Descending(b))));
        prop_assert_eq!(Ascending::read(&written(&Ascending(a))), Some(Ascending(a)));
        prop_assert_eq!(Descending::read(&written(&Descending(a))), Some(Descending(a)));
    }

    #[test]
    fn doubles_keep_their_order(a in any::<f64>(), b in any::<f64>()) {
        let (left, right) = (written(&DescendingDouble(a)), written(&DescendingDouble(b)));
        match (a.is_nan(), b.is_nan()) {
            (true, true) => prop_assert_eq!(left, right),
            (true, false) => prop_assert!(left > right),
            (false, true) => prop_assert!(left < right),
            (false, false) => prop_assert_eq!(b.total_cmp(&a), left.cmp(&right)),
        }
        let back = DescendingDouble::read(&written(&DescendingDouble(a))).unwrap().0;
        prop_assert!(back.to_bits() == a.to_bits() || (a.is_nan() && back.is_nan()));
    }
}

#[test]
fn the_edges_of_doubles_are_in_order() {
    let values =
        [f64::INFINITY, f64::MAX, 1.0, 5e-324, 0.0, -0.0, -5e-324, -1.0, f64::MIN, f64::NEG_INFINITY, f64::NAN];
    let keys: Vec<_> = values.iter().map(|value| written(&DescendingDouble(*value))).collect();
    assert!(keys.is_sorted() && keys.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn metrics_spread_over_the_buckets() {
    let mut counts = [0; Bucket::COUNT as usize];
    for number in 0..1_600 {
        counts[usize::from(Bucket::of(&format!("metric_{number}")).0)] += 1;
    }
    assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
}

#[test]
fn versions_of_mcp_servers_sort_by_precedence() {
    let ordered = [
        "0.9.10",
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-A",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-alpha-1",
        "1.0.0-alpha1",
        "1.0.0-beta",
        "1.0.0-rc.1+z",
        "1.0.0",
        "1.0.0+a",
        "1.0.0+b",
        "1.0.1",
        "1.10.0",
        "2.0.0-0",
        "2147483647.0.0",
    ];
    let version = |text: &str| model::McpVersion::of(text).unwrap();
    for pair in ordered.windows(2) {
        assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        assert!(version(pair[0]).text() < version(pair[1]).text(), "{pair:?}");
    }
    for text in ordered {
        assert_eq!(model::McpVersion::read(&version(text).text()), Some(version(text)));
        assert!(!version(text).text().contains('#'));
    }
    let longest = format!("1.0.0-{}0", "a.".repeat(60));
    assert!(version(&longest).text().len() < 500);
}

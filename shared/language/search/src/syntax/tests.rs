//! Tests of the nodes that texts are parsed into.

use super::{Kind, statements};

/// Returns the outermost nodes of a text with a single statement, without white space.
fn outline(source: &str) -> Vec<(Kind, &str)> {
    let statements = statements(source).unwrap();
    let [statement] = statements.as_slice() else { panic!("{source:?} is not one statement") };
    statement.iter().filter(|node| !node.is_blank()).map(|node| (node.kind, node.text)).collect()
}

#[test]
fn comparisons_stand_apart() {
    assert_eq!(
        outline("metrics.acc >= 1.5 AND params.`a b`='x'"),
        [(Kind::Comparison, "metrics.acc >= 1.5"), (Kind::Keyword, "AND"), (Kind::Comparison, "params.`a b`='x'"),]
    );
}

#[test]
fn numbers() {
    for (source, parts) in [
        ("12", &[(Kind::Integer, "12")][..]),
        ("-1.5", &[(Kind::Float, "-1.5")]),
        ("1e-5", &[(Kind::Float, "1e-5")]),
        ("0x1F", &[(Kind::Hexadecimal, "0x1F")]),
        ("1.", &[(Kind::Float, "1.")]),
        (".5", &[(Kind::Float, ".5")]),
        // A number that is directly followed by a letter loses its last digit to the name.
        ("12ab", &[(Kind::Identifier, "12ab")]),
        ("1e+5", &[(Kind::Operation, "1e+5")]),
    ] {
        assert_eq!(outline(source), parts, "{source}");
    }
}

#[test]
fn quotes() {
    for source in ["'a''b'", r"'a\'b'", "'a\nb'", "''", "'--'"] {
        assert_eq!(outline(source), [(Kind::SingleQuoted, source)]);
    }
    for source in [r#""a\"b""#, "`a``b`", "`a.b`", "´a´", "[a b]"] {
        assert_eq!(outline(source), [(Kind::Identifier, source)]);
    }
    // Without a closing quote, an escaped quote ends the text.
    assert_eq!(outline(r"'a\' b"), [(Kind::SingleQuoted, r"'a\'"), (Kind::Identifier, "b")]);
    assert_eq!(outline("'a"), [(Kind::Unknown, "'"), (Kind::Identifier, "a")]);
}

#[test]
fn keywords_are_names_next_to_a_dot() {
    assert_eq!(outline("order"), [(Kind::Keyword, "order")]);
    assert_eq!(outline("tags.order"), [(Kind::Identifier, "tags.order")]);
    assert_eq!(outline("order.tags"), [(Kind::Identifier, "order.tags")]);
    assert_eq!(outline("tags.in"), [(Kind::Identifier, "tags."), (Kind::Keyword, "in")]);
    assert_eq!(outline("timestamp"), [(Kind::TypeName, "timestamp")]);
    assert_eq!(outline("and(x)"), [(Kind::Function, "and(x)")]);
}

#[test]
fn a_key_ends_before_a_fraction() {
    assert_eq!(outline("metrics.m1.5"), [(Kind::Identifier, "metrics.m1"), (Kind::Float, ".5")]);
}

#[test]
fn comments_join_the_group_before_them() {
    assert_eq!(outline("a = 1 -- c\n AND b = 2")[0], (Kind::Comparison, "a = 1 -- c\n"));
    assert_eq!(outline("a = 1 -- c"), [(Kind::Comparison, "a = 1"), (Kind::Comment, "-- c")]);
    assert_eq!(outline("/* a */ b"), [(Kind::CommentGroup, "/* a */"), (Kind::Identifier, "b")]);
    assert_eq!(outline("/* a"), [(Kind::Operator, "/"), (Kind::Wildcard, "*"), (Kind::Identifier, "a")]);
}

#[test]
fn statements_end_at_semicolons() {
    let texts = |source| -> Vec<String> {
        let statements = statements(source).unwrap().into_iter();
        statements.map(|nodes| nodes.iter().map(|node| node.text).collect()).collect()
    };
    assert_eq!(texts("a;b"), ["a;", "b"]);
    assert_eq!(texts("a; \n"), ["a; "]);
    assert_eq!(texts("(a;b)"), ["(a;b)"]);
    assert_eq!(texts(" \n "), [""; 0]);
}

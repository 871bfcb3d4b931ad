//! Tests of the nodes that texts are parsed into.

use super::{NodeKind, statements};

/// Returns the outermost nodes of a text that consists of a single statement, without white space.
fn outline(source: &str) -> Vec<(NodeKind, &str)> {
    let statements = statements(source).unwrap();
    let [statement] = statements.as_slice() else { panic!("{source:?} is not one statement") };
    statement.iter().filter(|node| !node.is_blank()).map(|node| (node.kind, node.text)).collect()
}

#[test]
fn comparisons_stand_apart() {
    assert_eq!(
        outline("metrics.acc >= 1.5 AND params.`a b`='x'"),
        [
            (NodeKind::Comparison, "metrics.acc >= 1.5"),
            (NodeKind::Keyword, "AND"),
            (NodeKind::Comparison, "params.`a b`='x'"),
        ]
    );
}

#[test]
fn numbers() {
    for (source, parts) in [
        ("12", &[(NodeKind::Integer, "12")][..]),
        ("-1.5", &[(NodeKind::Float, "-1.5")]),
        ("1e-5", &[(NodeKind::Float, "1e-5")]),
        ("0x1F", &[(NodeKind::Hexadecimal, "0x1F")]),
        ("1.", &[(NodeKind::Float, "1.")]),
        (".5", &[(NodeKind::Float, ".5")]),
        // A number that is directly followed by a letter loses its last digit to the name.
        ("12ab", &[(NodeKind::Identifier, "12ab")]),
        ("1e+5", &[(NodeKind::Operation, "1e+5")]),
    ] {
        assert_eq!(outline(source), parts, "{source}");
    }
}

#[test]
fn quotes() {
    for source in ["'a''b'", r"'a\'b'", "'a\nb'", "''", "'--'"] {
        assert_eq!(outline(source), [(NodeKind::SingleQuoted, source)]);
    }
    for source in [r#""a\"b""#, "`a``b`", "`a.b`", "´a´", "[a b]"] {
        assert_eq!(outline(source), [(NodeKind::Identifier, source)]);
    }
    // Without a closing quote, an escaped quote ends the text.
    assert_eq!(outline(r"'a\' b"), [(NodeKind::SingleQuoted, r"'a\'"), (NodeKind::Identifier, "b")]);
    assert_eq!(outline("'a"), [(NodeKind::Unknown, "'"), (NodeKind::Identifier, "a")]);
}

#[test]
fn keywords_are_names_next_to_a_dot() {
    assert_eq!(outline("order"), [(NodeKind::Keyword, "order")]);
    assert_eq!(outline("tags.order"), [(NodeKind::Identifier, "tags.order")]);
    assert_eq!(outline("order.tags"), [(NodeKind::Identifier, "order.tags")]);
    assert_eq!(outline("tags.in"), [(NodeKind::Identifier, "tags."), (NodeKind::Keyword, "in")]);
    assert_eq!(outline("timestamp"), [(NodeKind::TypeName, "timestamp")]);
    assert_eq!(outline("and(x)"), [(NodeKind::Function, "and(x)")]);
}

#[test]
fn a_key_ends_before_a_fraction() {
    assert_eq!(outline("metrics.m1.5"), [(NodeKind::Identifier, "metrics.m1"), (NodeKind::Float, ".5")]);
}

#[test]
fn comments_join_the_group_before_them() {
    assert_eq!(outline("a = 1 -- c\n AND b = 2")[0], (NodeKind::Comparison, "a = 1 -- c\n"));
    assert_eq!(outline("a = 1 -- c"), [(NodeKind::Comparison, "a = 1"), (NodeKind::Comment, "-- c")]);
    assert_eq!(outline("/* a */ b"), [(NodeKind::CommentGroup, "/* a */"), (NodeKind::Identifier, "b")]);
    assert_eq!(outline("/* a"), [(NodeKind::Operator, "/"), (NodeKind::Wildcard, "*"), (NodeKind::Identifier, "a")]);
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

//! Groups that form around a token in the middle.

use super::node::{Kind, Node};

/// A rule for grouping the nodes around a middle token.
pub(super) struct Infix {
    pub(super) kind: Kind,
    pub(super) is_middle: fn(&Node) -> bool,
    pub(super) may_precede: fn(Kind, &str) -> bool,
    pub(super) may_follow: fn(Option<&Node>) -> bool,
    /// Whether the group begins at the middle token and excludes the node before it.
    pub(super) from_middle: bool,
    /// Whether the group includes the node that follows.
    pub(super) takes: fn(Option<&Node>) -> bool,
    /// Whether an existing group of the same kind is extended instead of becoming a member of a new
    /// group.
    pub(super) extend: bool,
}

/// A key, and the name that it is qualified by.
pub(super) const PERIOD: Infix = Infix {
    kind: Kind::Identifier,
    is_middle: |node| node.is_mark(".") || (node.kind == Kind::Operator && matches!(node.text, "->" | "->>")),
    may_precede: |kind, _| matches!(kind, Kind::Brackets | Kind::Identifier | Kind::Name | Kind::DoubleQuoted),
    may_follow: |_| true,
    from_middle: false,
    takes: |next| {
        let kinds =
            [Kind::Brackets, Kind::Function, Kind::Name, Kind::DoubleQuoted, Kind::Wildcard, Kind::SingleQuoted];
        next.is_some_and(|next| kinds.contains(&next.kind))
    },
    extend: true,
};

/// An element of an array.
pub(super) const ARRAY: Infix = Infix {
    kind: Kind::Identifier,
    is_middle: |node| node.kind == Kind::Brackets,
    may_precede: |kind, _| {
        matches!(kind, Kind::Brackets | Kind::Identifier | Kind::Function | Kind::Name | Kind::DoubleQuoted)
    },
    may_follow: |_| true,
    from_middle: false,
    takes: |_| false,
    extend: true,
};

/// A value, and the SQL type that it is cast to: `x::int`.
pub(super) const CAST: Infix = Infix {
    kind: Kind::Identifier,
    is_middle: |node| node.is_mark("::"),
    may_precede: |_, _| true,
    may_follow: |next| next.is_some(),
    from_middle: false,
    takes: |_| true,
    extend: true,
};

/// A string, and the SQL type before it: `DATE '2024-01-01'`.
pub(super) const TYPED_LITERAL: Infix = Infix {
    kind: Kind::TypedLiteral,
    is_middle: |node| node.kind == Kind::TypeName,
    may_precede: |_, _| true,
    may_follow: |next| next.is_some_and(|next| next.kind == Kind::SingleQuoted),
    from_middle: true,
    takes: |_| true,
    extend: false,
};

/// An arithmetic operation.
pub(super) const OPERATION: Infix = Infix {
    kind: Kind::Operation,
    is_middle: |node| matches!(node.kind, Kind::Operator | Kind::Wildcard),
    may_precede: |kind, _| kind == Kind::Brackets || is_operand(kind),
    may_follow: |next| next.is_some_and(|next| next.kind == Kind::Brackets || is_operand(next.kind)),
    from_middle: false,
    takes: |_| true,
    extend: false,
};

/// A comparison.
pub(super) const COMPARISON: Infix = Infix {
    kind: Kind::Comparison,
    is_middle: |node| node.kind == Kind::Comparator,
    may_precede: is_comparable,
    may_follow: |next| next.is_some_and(|next| is_comparable(next.kind, next.text)),
    from_middle: false,
    takes: |_| true,
    extend: false,
};

/// A node that is named with AS, as in SQL.
pub(super) const NAMED: Infix = Infix {
    kind: Kind::Identifier,
    is_middle: |node| node.is_keyword("AS"),
    may_precede: |kind, text| {
        text.eq_ignore_ascii_case("NULL") || !matches!(kind, Kind::Keyword | Kind::Direction | Kind::StatementWord)
    },
    may_follow: |next| next.is_some_and(|next| next.kind != Kind::StatementWord),
    from_middle: false,
    takes: |_| true,
    extend: true,
};

/// An assignment with `:=`.
pub(super) const ASSIGNMENT: Infix = Infix {
    kind: Kind::Assignment,
    is_middle: |node| node.kind == Kind::Assign,
    may_precede: |kind, _| kind != Kind::Keyword,
    may_follow: |next| next.is_some_and(|next| next.kind != Kind::Keyword),
    from_middle: false,
    takes: |_| true,
    extend: true,
};

/// A list of nodes with commas between them.
pub(super) const IDENTIFIER_LIST: Infix = Infix {
    kind: Kind::IdentifierList,
    is_middle: |node| node.is_mark(","),
    may_precede: |kind, _| may_be_listed(kind),
    may_follow: |next| next.is_some_and(|next| may_be_listed(next.kind)),
    from_middle: false,
    takes: |_| true,
    extend: true,
};

fn is_operand(kind: Kind) -> bool {
    let groups = [Kind::Parenthesis, Kind::Function, Kind::Identifier, Kind::Operation, Kind::TypedLiteral];
    let tokens = [Kind::SingleQuoted, Kind::DoubleQuoted, Kind::Name, Kind::Placeholder];
    kind.is_number() || groups.contains(&kind) || tokens.contains(&kind)
}

fn is_comparable(kind: Kind, text: &str) -> bool {
    is_operand(kind) || (kind == Kind::Keyword && text.eq_ignore_ascii_case("NULL"))
}

fn may_be_listed(kind: Kind) -> bool {
    let others = [Kind::Comparison, Kind::IdentifierList, Kind::Keyword, Kind::Wildcard];
    let operand = is_operand(kind) && !matches!(kind, Kind::Parenthesis | Kind::TypedLiteral);
    operand || others.contains(&kind)
}

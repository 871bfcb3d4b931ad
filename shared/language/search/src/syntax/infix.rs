//! Grouping rules for groups that form around a token in the middle, such as a comparator.

use super::node::{NodeKind, SyntaxNode};

/// A rule for grouping the nodes around a middle token.
pub(super) struct InfixRule {
    pub(super) kind: NodeKind,
    pub(super) is_middle: fn(&SyntaxNode) -> bool,
    pub(super) may_precede: fn(NodeKind, &str) -> bool,
    pub(super) may_follow: fn(Option<&SyntaxNode>) -> bool,
    /// Whether the group begins at the middle token and excludes the node before it.
    pub(super) from_middle: bool,
    /// Checks whether the group includes the node that follows the middle token.
    pub(super) takes: fn(Option<&SyntaxNode>) -> bool,
    /// Whether an existing group of the same kind is extended instead of becoming a member of a new
    /// group.
    pub(super) extend: bool,
}

/// A key with its qualifier, such as `metrics.accuracy`.
pub(super) const PERIOD: InfixRule = InfixRule {
    kind: NodeKind::Identifier,
    is_middle: |node| node.is_mark(".") || (node.kind == NodeKind::Operator && matches!(node.text, "->" | "->>")),
    may_precede: |kind, _| {
        matches!(kind, NodeKind::Brackets | NodeKind::Identifier | NodeKind::Name | NodeKind::DoubleQuoted)
    },
    may_follow: |_| true,
    from_middle: false,
    takes: |next| {
        let kinds = [
            NodeKind::Brackets,
            NodeKind::Function,
            NodeKind::Name,
            NodeKind::DoubleQuoted,
            NodeKind::Wildcard,
            NodeKind::SingleQuoted,
        ];
        next.is_some_and(|next| kinds.contains(&next.kind))
    },
    extend: true,
};

/// An element of an array.
pub(super) const ARRAY: InfixRule = InfixRule {
    kind: NodeKind::Identifier,
    is_middle: |node| node.kind == NodeKind::Brackets,
    may_precede: |kind, _| {
        matches!(
            kind,
            NodeKind::Brackets | NodeKind::Identifier | NodeKind::Function | NodeKind::Name | NodeKind::DoubleQuoted
        )
    },
    may_follow: |_| true,
    from_middle: false,
    takes: |_| false,
    extend: true,
};

/// A value, and the SQL type that it is cast to: `x::int`.
pub(super) const CAST: InfixRule = InfixRule {
    kind: NodeKind::Identifier,
    is_middle: |node| node.is_mark("::"),
    may_precede: |_, _| true,
    may_follow: |next| next.is_some(),
    from_middle: false,
    takes: |_| true,
    extend: true,
};

/// A string, and the SQL type before it: `DATE '2024-01-01'`.
pub(super) const TYPED_LITERAL: InfixRule = InfixRule {
    kind: NodeKind::TypedLiteral,
    is_middle: |node| node.kind == NodeKind::TypeName,
    may_precede: |_, _| true,
    may_follow: |next| next.is_some_and(|next| next.kind == NodeKind::SingleQuoted),
    from_middle: true,
    takes: |_| true,
    extend: false,
};

/// An arithmetic operation.
pub(super) const OPERATION: InfixRule = InfixRule {
    kind: NodeKind::Operation,
    is_middle: |node| matches!(node.kind, NodeKind::Operator | NodeKind::Wildcard),
    may_precede: |kind, _| kind == NodeKind::Brackets || is_operand(kind),
    may_follow: |next| next.is_some_and(|next| next.kind == NodeKind::Brackets || is_operand(next.kind)),
    from_middle: false,
    takes: |_| true,
    extend: false,
};

/// A comparison.
pub(super) const COMPARISON: InfixRule = InfixRule {
    kind: NodeKind::Comparison,
    is_middle: |node| node.kind == NodeKind::Comparator,
    may_precede: is_comparable,
    may_follow: |next| next.is_some_and(|next| is_comparable(next.kind, next.text)),
    from_middle: false,
    takes: |_| true,
    extend: false,
};

/// A node that is named with AS, as in SQL.
pub(super) const ALIAS: InfixRule = InfixRule {
    kind: NodeKind::Identifier,
    is_middle: |node| node.is_keyword("AS"),
    may_precede: |kind, text| {
        text.eq_ignore_ascii_case("NULL")
            || !matches!(kind, NodeKind::Keyword | NodeKind::Direction | NodeKind::StatementWord)
    },
    may_follow: |next| next.is_some_and(|next| next.kind != NodeKind::StatementWord),
    from_middle: false,
    takes: |_| true,
    extend: true,
};

/// An assignment with `:=`.
pub(super) const ASSIGNMENT: InfixRule = InfixRule {
    kind: NodeKind::Assignment,
    is_middle: |node| node.kind == NodeKind::Assign,
    may_precede: |kind, _| kind != NodeKind::Keyword,
    may_follow: |next| next.is_some_and(|next| next.kind != NodeKind::Keyword),
    from_middle: false,
    takes: |_| true,
    extend: true,
};

/// A list of nodes with commas between them.
pub(super) const IDENTIFIER_LIST: InfixRule = InfixRule {
    kind: NodeKind::IdentifierList,
    is_middle: |node| node.is_mark(","),
    may_precede: |kind, _| may_be_listed(kind),
    may_follow: |next| next.is_some_and(|next| may_be_listed(next.kind)),
    from_middle: false,
    takes: |_| true,
    extend: true,
};

fn is_operand(kind: NodeKind) -> bool {
    let groups =
        [NodeKind::Parenthesis, NodeKind::Function, NodeKind::Identifier, NodeKind::Operation, NodeKind::TypedLiteral];
    let tokens = [NodeKind::SingleQuoted, NodeKind::DoubleQuoted, NodeKind::Name, NodeKind::Placeholder];
    kind.is_number() || groups.contains(&kind) || tokens.contains(&kind)
}

fn is_comparable(kind: NodeKind, text: &str) -> bool {
    is_operand(kind) || (kind == NodeKind::Keyword && text.eq_ignore_ascii_case("NULL"))
}

fn may_be_listed(kind: NodeKind) -> bool {
    let others = [NodeKind::Comparison, NodeKind::IdentifierList, NodeKind::Keyword, NodeKind::Wildcard];
    let operand = is_operand(kind) && !matches!(kind, NodeKind::Parenthesis | NodeKind::TypedLiteral);
    operand || others.contains(&kind)
}

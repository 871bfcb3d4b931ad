//! Grouping of tokens in the passes of `sqlparse` (its `engine/grouping.py`).
//!
//! Only the outermost level is grouped, because MLflow examines only comparisons at that level, and
//! treats the content of parentheses, functions and similar groups as text. Passes that only matter
//! for complete SQL statements (loops, windows) are omitted.

use super::infix::{self, InfixRule};
use super::node::{NodeKind, SyntaxNode};

/// Maximum nesting depth that `sqlparse` groups (`MAX_GROUPING_DEPTH`).
const MAX_DEPTH: usize = 100;

/// Groups the tokens of one statement of `source`. Returns `None` if they are nested too deeply.
pub(super) fn group<'a>(source: &'a str, tokens: Vec<SyntaxNode<'a>>) -> Option<Vec<SyntaxNode<'a>>> {
    let mut list = NodeList { source, nodes: tokens };
    list.comments();
    let in_brackets = list.delimited(NodeKind::Brackets, "[", "]");
    let in_parentheses = list.delimited(NodeKind::Parenthesis, "(", ")");
    if in_brackets.max(in_parentheses) > MAX_DEPTH {
        return None;
    }
    list.functions();
    list.where_clauses();
    list.infix(&infix::PERIOD);
    list.infix(&infix::ARRAY);
    list.identifiers();
    list.directions();
    list.infix(&infix::CAST);
    list.infix(&infix::TYPED_LITERAL);
    list.infix(&infix::OPERATION);
    list.infix(&infix::COMPARISON);
    list.infix(&infix::ALIAS);
    list.aliases();
    list.infix(&infix::ASSIGNMENT);
    list.attach_comments();
    list.infix(&infix::IDENTIFIER_LIST);
    Some(list.nodes)
}

struct NodeList<'a> {
    source: &'a str,
    nodes: Vec<SyntaxNode<'a>>,
}

/// A pass over a list of nodes. Nodes move from `rest` to `done`, and the last nodes of `done` are
/// combined into groups. A pass therefore takes linear time, regardless of the number of groups
/// that it creates.
struct GroupingPass<'a> {
    source: &'a str,
    rest: std::vec::IntoIter<SyntaxNode<'a>>,
    done: Vec<SyntaxNode<'a>>,
}

/// The last node before the middle of an infix group, in its state before any grouping. It is
/// needed because in `a = b = c`, the right side of one comparison is also the left side of the
/// next. The second comparison then contains the whole first comparison.
#[derive(Clone, Copy)]
struct Before<'a> {
    at: usize,
    kind: NodeKind,
    text: &'a str,
}

impl<'a> GroupingPass<'a> {
    /// Returns the number of nodes in `rest` up to and including the next one that is not white
    /// space.
    fn to_next_solid(&self) -> Option<usize> {
        self.rest.as_slice().iter().position(|node| !node.is_blank()).map(|place| place + 1)
    }

    /// Returns the last of the first `count` nodes in `rest`.
    fn ahead(&self, count: Option<usize>) -> Option<&SyntaxNode<'a>> {
        self.rest.as_slice().get(count?.checked_sub(1)?)
    }

    /// Returns the index of the last node in `done` that is not white space.
    fn last_solid(&self) -> Option<usize> {
        self.done.iter().rposition(|node| !node.is_blank())
    }

    /// Moves `count` nodes from `rest` to `done` unchanged.
    fn take(&mut self, count: usize) {
        self.done.extend(self.rest.by_ref().take(count));
    }

    /// Combines the nodes of `done` from index `from` on into one node. With `extend`, the first
    /// node grows instead of becoming a member of a new node.
    fn wrap(&mut self, kind: NodeKind, from: usize, extend: bool) {
        let mut members: Vec<_> = self.done.drain(from..).collect();
        let (Some(end), Some(first)) = (members.last().map(SyntaxNode::end), members.first_mut()) else { return };
        let (start, kind) = (first.start, if extend { first.kind } else { kind });
        let members = match (kind, extend) {
            (NodeKind::Comparison, true) => {
                let mut grown = std::mem::take(&mut first.members);
                grown.extend(members.into_iter().skip(1));
                grown
            }
            (NodeKind::Comparison, false) => {
                for member in &mut members {
                    member.members.clear();
                }
                members
            }
            _ => Vec::new(),
        };
        self.done.push(SyntaxNode { kind, text: &self.source[start..end], start, members });
    }
}

impl<'a> NodeList<'a> {
    /// Visits the nodes one by one. `step` is called with each node. It moves the node to `done`,
    /// and may do the same with further nodes of `rest`.
    fn pass(&mut self, mut step: impl FnMut(&mut GroupingPass<'a>, SyntaxNode<'a>)) {
        let rest = std::mem::take(&mut self.nodes).into_iter();
        let mut pass = GroupingPass { source: self.source, done: Vec::with_capacity(rest.len()), rest };
        while let Some(node) = pass.rest.next() {
            step(&mut pass, node);
        }
        self.nodes = pass.done;
    }

    fn infix(&mut self, rule: &InfixRule) {
        let mut before: Option<Before<'a>> = None;
        self.pass(|pass, node| {
            if node.is_blank() {
                pass.done.push(node);
                return;
            }
            let count = pass.to_next_solid();
            let next = pass.ahead(count);
            let joins = (rule.is_middle)(&node) && (rule.may_follow)(next);
            let here = pass.done.len();
            let Some(left) = before.filter(|before| joins && (rule.may_precede)(before.kind, before.text)) else {
                before = Some(Before { at: here, kind: node.kind, text: node.text });
                pass.done.push(node);
                return;
            };
            let taken = next.filter(|_| (rule.takes)(next)).map(|next| (next.kind, next.text));
            pass.done.push(node);
            pass.take(count.filter(|_| taken.is_some()).unwrap_or_default());
            let from = if rule.from_middle { here } else { left.at };
            let extend = rule.extend && pass.done[from].kind == rule.kind;
            pass.wrap(rule.kind, from, extend);
            let (kind, text) = taken.unwrap_or((rule.kind, pass.done[from].text));
            before = Some(Before { at: from, kind, text });
        });
    }

    /// Groups runs of comments and line breaks. A run at the end of the text is not grouped.
    fn comments(&mut self) {
        let in_run = |node: &SyntaxNode| matches!(node.kind, NodeKind::Comment | NodeKind::Newline);
        self.pass(|pass, node| {
            let (from, is_comment) = (pass.done.len(), node.kind == NodeKind::Comment);
            pass.done.push(node);
            if !is_comment {
                return;
            }
            match pass.rest.as_slice().iter().position(|node| !in_run(node)) {
                Some(more) => {
                    pass.take(more);
                    pass.wrap(NodeKind::CommentGroup, from, false);
                }
                None => pass.take(usize::MAX),
            }
        });
    }

    /// Groups the nodes between two marks, and returns the depth of the nesting.
    fn delimited(&mut self, kind: NodeKind, open: &str, close: &str) -> usize {
        // The index of each opening mark, and the maximum depth of the groups that it contains so
        // far.
        let mut opened: Vec<(usize, usize)> = Vec::new();
        let mut deepest = 0;
        self.pass(|pass, node| {
            if node.is_mark(open) {
                opened.push((pass.done.len(), 0));
            }
            let closes = node.is_mark(close);
            pass.done.push(node);
            if closes && let Some((from, within)) = opened.pop() {
                pass.wrap(kind, from, false);
                deepest = deepest.max(within + 1);
                if let Some((_, outer)) = opened.last_mut() {
                    *outer = (*outer).max(within + 1);
                }
            }
        });
        deepest
    }

    /// Groups a name with the parenthesis after it.
    fn functions(&mut self) {
        self.pass(|pass, node| {
            let may_call = matches!(node.kind, NodeKind::Name | NodeKind::TypeName | NodeKind::Placeholder);
            let (from, count) = (pass.done.len(), if may_call { pass.to_next_solid() } else { None });
            let calls = pass.ahead(count).is_some_and(|next| next.kind == NodeKind::Parenthesis);
            pass.done.push(node);
            if calls {
                pass.take(count.unwrap_or_default());
                pass.wrap(NodeKind::Function, from, false);
            }
        });
    }

    /// Groups WHERE with everything up to the next clause of a SQL query.
    fn where_clauses(&mut self) {
        const ENDS: [&str; 10] = [
            "ORDER BY",
            "GROUP BY",
            "LIMIT",
            "UNION",
            "UNION ALL",
            "EXCEPT",
            "INTERSECT",
            "HAVING",
            "RETURNING",
            "INTO",
        ];
        self.pass(|pass, node| {
            let (from, begins) = (pass.done.len(), node.is_keyword("WHERE"));
            pass.done.push(node);
            if begins {
                let ends = |node: &SyntaxNode| ENDS.iter().any(|end| node.is_keyword(end));
                let more = pass.rest.as_slice().iter().position(ends);
                pass.take(more.unwrap_or(usize::MAX));
                pass.wrap(NodeKind::Where, from, false);
            }
        });
    }

    fn identifiers(&mut self) {
        for node in &mut self.nodes {
            if matches!(node.kind, NodeKind::Name | NodeKind::DoubleQuoted) {
                node.kind = NodeKind::Identifier;
            }
        }
    }

    /// Groups ASC or DESC with the node before it.
    fn directions(&mut self) {
        self.pass(|pass, node| {
            let is_direction = node.kind == NodeKind::Direction;
            let before = if is_direction { pass.last_solid() } else { None };
            pass.done.push(node);
            let sorts = |node: &SyntaxNode| node.kind == NodeKind::Identifier || is_any_number(node.kind);
            if let Some(before) = before.filter(|before| sorts(&pass.done[*before])) {
                pass.wrap(NodeKind::Identifier, before, false);
            }
        });
    }

    /// Groups a node with an identifier directly after it, which is an alias in SQL.
    fn aliases(&mut self) {
        let named = [
            NodeKind::Parenthesis,
            NodeKind::Function,
            NodeKind::Identifier,
            NodeKind::Operation,
            NodeKind::Comparison,
        ];
        self.pass(|pass, node| {
            let (from, kind) = (pass.done.len(), node.kind);
            let may_be_named = named.contains(&kind) || is_any_number(kind);
            let count = if may_be_named { pass.to_next_solid() } else { None };
            let is_named = pass.ahead(count).is_some_and(|next| next.kind == NodeKind::Identifier);
            pass.done.push(node);
            if is_named {
                pass.take(count.unwrap_or_default());
                pass.wrap(NodeKind::Identifier, from, kind == NodeKind::Identifier);
            }
        });
    }

    /// Adds a comment to the group before it.
    fn attach_comments(&mut self) {
        self.pass(|pass, node| {
            let before = if node.kind == NodeKind::CommentGroup { pass.last_solid() } else { None };
            pass.done.push(node);
            if let Some(before) = before.filter(|before| pass.done[*before].kind.is_group()) {
                pass.wrap(pass.done[before].kind, before, true);
            }
        });
    }
}

fn is_any_number(kind: NodeKind) -> bool {
    kind.is_number() || kind == NodeKind::Hexadecimal
}

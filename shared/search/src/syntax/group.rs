//! Groups tokens the way `sqlparse` does (its `engine/grouping.py`), pass by pass.
//!
//! Only the outermost level is grouped: MLflow looks at comparisons there and takes whatever is inside parentheses,
//! functions and the like as text. Passes for whole SQL statements (loops, windows) are left out.

use super::infix::{self, Infix};
use super::node::{Kind, Node};

/// Groups the tokens of one statement of `source`.
pub(super) fn group<'a>(source: &'a str, tokens: Vec<Node<'a>>) -> Vec<Node<'a>> {
    let mut list = List { source, nodes: tokens };
    list.comments();
    list.delimited(Kind::Brackets, "[", "]");
    list.delimited(Kind::Parenthesis, "(", ")");
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
    list.infix(&infix::NAMED);
    list.aliases();
    list.infix(&infix::ASSIGNMENT);
    list.attach_comments();
    list.infix(&infix::IDENTIFIER_LIST);
    list.nodes
}

struct List<'a> {
    source: &'a str,
    nodes: Vec<Node<'a>>,
}

/// What stands before a middle, as it was before it was grouped: the right side of one comparison may be the left side
/// of the next (`a = b = c`), and then the whole first comparison is taken in.
#[derive(Clone, Copy)]
struct Before<'a> {
    at: usize,
    kind: Kind,
    text: &'a str,
}

impl<'a> List<'a> {
    /// Makes one node of `from..=to`.
    fn wrap(&mut self, kind: Kind, from: usize, to: usize, extend: bool) {
        let (start, end) = (self.nodes[from].start, self.nodes[to].end());
        let text = &self.source[start..end];
        let mut members: Vec<_> = self.nodes.drain(from..=to).collect();
        let first = &mut members[0];
        let kind = if extend { first.kind } else { kind };
        let members = match (kind, extend) {
            (Kind::Comparison, true) => {
                let mut grown = std::mem::take(&mut first.members);
                grown.extend(members.into_iter().skip(1));
                grown
            }
            (Kind::Comparison, false) => {
                for member in &mut members {
                    member.members.clear();
                }
                members
            }
            _ => Vec::new(),
        };
        self.nodes.insert(from, Node { kind, text, start, members });
    }

    /// The place of the next node after `at` that is not blank.
    fn next_solid(&self, at: usize) -> Option<usize> {
        (at + 1..self.nodes.len()).find(|&place| !self.nodes[place].is_blank())
    }

    /// The place of the last node before `at` that is not blank.
    fn previous_solid(&self, at: usize) -> Option<usize> {
        (0..at).rev().find(|&place| !self.nodes[place].is_blank())
    }

    fn infix(&mut self, rule: &Infix) {
        let mut before: Option<Before<'a>> = None;
        let mut at = 0;
        while at < self.nodes.len() {
            if self.nodes[at].is_blank() {
                at += 1;
                continue;
            }
            let place = self.next_solid(at);
            let next = place.map(|place| &self.nodes[place]);
            let joins = (rule.is_middle)(&self.nodes[at]) && (rule.may_follow)(next);
            if let Some(left) = before.filter(|before| joins && (rule.may_precede)(before.kind, before.text)) {
                let taken = next.filter(|_| (rule.takes)(next)).map(|next| (next.kind, next.text));
                let from = if rule.from_middle { at } else { left.at };
                let to = if taken.is_some() { place.unwrap_or(at) } else { at };
                let extend = rule.extend && self.nodes[from].kind == rule.kind;
                self.wrap(rule.kind, from, to, extend);
                let (kind, text) = taken.unwrap_or((rule.kind, self.nodes[from].text));
                before = Some(Before { at: from, kind, text });
                at = from + 1;
            } else {
                before = Some(Before { at, kind: self.nodes[at].kind, text: self.nodes[at].text });
                at += 1;
            }
        }
    }

    /// Runs of comments and line breaks. A comment nothing follows stays as it is.
    fn comments(&mut self) {
        let in_run = |node: &Node| matches!(node.kind, Kind::Comment | Kind::Newline);
        let mut at = 0;
        while at < self.nodes.len() {
            if self.nodes[at].kind == Kind::Comment {
                let Some(end) = (at..self.nodes.len()).find(|&place| !in_run(&self.nodes[place])) else { return };
                self.wrap(Kind::CommentGroup, at, end - 1, false);
            }
            at += 1;
        }
    }

    fn delimited(&mut self, kind: Kind, open: &str, close: &str) {
        let mut opened = Vec::new();
        let mut at = 0;
        while at < self.nodes.len() {
            if self.nodes[at].is_mark(open) {
                opened.push(at);
            } else if self.nodes[at].is_mark(close)
                && let Some(from) = opened.pop()
            {
                self.wrap(kind, from, at, false);
                at = from;
            }
            at += 1;
        }
    }

    /// A name and the parenthesis after it.
    fn functions(&mut self) {
        let mut at = 0;
        while at < self.nodes.len() {
            if matches!(self.nodes[at].kind, Kind::Name | Kind::TypeName | Kind::Placeholder)
                && let Some(next) = self.next_solid(at)
                && self.nodes[next].kind == Kind::Parenthesis
            {
                self.wrap(Kind::Function, at, next, false);
            }
            at += 1;
        }
    }

    /// WHERE and all up to the next clause of a SQL query.
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
        let mut at = 0;
        while at < self.nodes.len() {
            if self.nodes[at].is_keyword("WHERE") {
                let ends = |place: &usize| ENDS.iter().any(|end| self.nodes[*place].is_keyword(end));
                let end = (at + 1..self.nodes.len()).find(ends).unwrap_or(self.nodes.len());
                self.wrap(Kind::Where, at, end - 1, false);
            }
            at += 1;
        }
    }

    fn identifiers(&mut self) {
        for node in &mut self.nodes {
            if matches!(node.kind, Kind::Name | Kind::DoubleQuoted) {
                node.kind = Kind::Identifier;
            }
        }
    }

    /// ASC or DESC and what stands before it.
    fn directions(&mut self) {
        let mut at = 0;
        while at < self.nodes.len() {
            if self.nodes[at].kind == Kind::Direction
                && let Some(before) = self.previous_solid(at)
                && (self.nodes[before].kind == Kind::Identifier || is_any_number(self.nodes[before].kind))
            {
                self.wrap(Kind::Identifier, before, at, false);
                at = before;
            }
            at += 1;
        }
    }

    /// Something and the identifier right after it, which SQL takes for its alias.
    fn aliases(&mut self) {
        let named = [Kind::Parenthesis, Kind::Function, Kind::Identifier, Kind::Operation, Kind::Comparison];
        let mut at = 0;
        while at < self.nodes.len() {
            let kind = self.nodes[at].kind;
            if (named.contains(&kind) || is_any_number(kind))
                && let Some(next) = self.next_solid(at)
                && self.nodes[next].kind == Kind::Identifier
            {
                self.wrap(Kind::Identifier, at, next, kind == Kind::Identifier);
            }
            at += 1;
        }
    }

    /// A comment becomes part of the group before it.
    fn attach_comments(&mut self) {
        let mut at = 0;
        while at < self.nodes.len() {
            if self.nodes[at].kind == Kind::CommentGroup
                && let Some(before) = self.previous_solid(at)
                && self.nodes[before].kind.is_group()
            {
                self.wrap(self.nodes[before].kind, before, at, true);
                at = before;
            }
            at += 1;
        }
    }
}

fn is_any_number(kind: Kind) -> bool {
    kind.is_number() || kind == Kind::Hexadecimal
}

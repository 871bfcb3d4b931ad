//! The parser that splits a text into comparisons in the same way as MLflow.
//!
//! MLflow parses filters and orderings with `sqlparse`, a tolerant SQL tokenizer, and then
//! traverses the result. `sqlparse` therefore determines which texts are accepted, and which part
//! of an invalid text is named in the message. This module reproduces its steps: [`lexer`] splits
//! the text into tokens, [`statements`] splits the tokens at semicolons, and [`group`] groups them.

mod group;
mod infix;
mod keywords;
pub(crate) mod lexer;
mod node;
#[cfg(test)]
mod tests;

pub(crate) use node::{NodeKind, SyntaxNode};

/// Parses `source` into statements of grouped tokens. Returns `None` if it is too long or nested
/// too deeply.
pub(crate) fn statements(source: &str) -> Option<Vec<Vec<SyntaxNode<'_>>>> {
    let statements = split(lexer::tokens(source)?);
    statements.into_iter().map(|tokens| group::group(source, tokens)).collect()
}

/// Splits tokens after semicolons outside parentheses (`StatementSplitter` in `sqlparse`). If the
/// last statement consists of white space only, it is dropped.
fn split(tokens: Vec<SyntaxNode<'_>>) -> Vec<Vec<SyntaxNode<'_>>> {
    let mut statements = Vec::new();
    let mut statement = Vec::new();
    let mut level = 0;
    let mut ended = false;
    for token in tokens {
        if ended && !matches!(token.kind, NodeKind::Space | NodeKind::Comment) {
            statements.push(std::mem::take(&mut statement));
            (level, ended) = (0, false);
        }
        if token.kind == NodeKind::Punctuation {
            match token.text {
                "(" => level += 1,
                ")" => level -= 1,
                ";" if level <= 0 => ended = true,
                _ => {}
            }
        }
        statement.push(token);
    }
    if !statement.iter().all(SyntaxNode::is_blank) {
        statements.push(statement);
    }
    statements
}

//! From text to comparisons, the way MLflow gets there.
//!
//! MLflow reads filters and orderings with `sqlparse`, a tolerant SQL tokenizer, and then walks the
//! result. That tool decides which texts are accepted, and which part of a bad text a message
//! names. So its steps are kept: [`lexer`] splits, [`statements`] cuts at semicolons, [`group`]
//! gathers.

mod group;
mod infix;
mod keywords;
pub(crate) mod lexer;
mod node;
#[cfg(test)]
mod tests;

pub(crate) use node::{Kind, Node};

/// Reads `source` as statements of grouped tokens. `None` if it is too long to be read, or nested too deeply.
pub(crate) fn statements(source: &str) -> Option<Vec<Vec<Node<'_>>>> {
    let statements = split(lexer::tokens(source)?);
    statements.into_iter().map(|tokens| group::group(source, tokens)).collect()
}

/// Cuts after semicolons outside parentheses (`StatementSplitter` in `sqlparse`). A tail of white space is dropped.
fn split(tokens: Vec<Node<'_>>) -> Vec<Vec<Node<'_>>> {
    let mut statements = Vec::new();
    let mut statement = Vec::new();
    let mut level = 0;
    let mut ended = false;
    for token in tokens {
        if ended && !matches!(token.kind, Kind::Space | Kind::Comment) {
            statements.push(std::mem::take(&mut statement));
            (level, ended) = (0, false);
        }
        if token.kind == Kind::Punctuation {
            match token.text {
                "(" => level += 1,
                ")" => level -= 1,
                ";" if level <= 0 => ended = true,
                _ => {}
            }
        }
        statement.push(token);
    }
    if !statement.iter().all(Node::is_blank) {
        statements.push(statement);
    }
    statements
}

//! Turns errors of the TOML parser into one sentence that says what to fix.

use super::error::ConfigurationError;
use super::text::closest;

/// Returns the sentence for an error in this file.
pub(super) fn sentence(error: &toml::de::Error, text: &str) -> ConfigurationError {
    let start = error.span().map(|span| span.start);
    let before = start.and_then(|start| text.get(..start));
    let line = before.map(|before| 1 + before.matches('\n').count());
    let key = line.and_then(|line| text.lines().nth(line - 1)).and_then(key_of);
    // A message with a second line would be more than one sentence.
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    ConfigurationError { line, message: reworded(&message, key) }
}

/// Returns the key of a line such as `name = "entra"`.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim();
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.\"".contains(&byte);
    (!key.is_empty() && key.bytes().all(is_key)).then_some(key)
}

fn reworded(message: &str, key: Option<&str>) -> String {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.as_slice() {
        [unknown, known @ ..] if message.starts_with("unknown field") => match closest(unknown, known) {
            Some(meant) => format!("unknown key \"{unknown}\"; did you mean \"{meant}\"?"),
            None => format!("unknown key \"{unknown}\"; the keys here are {}", list(known)),
        },
        [unknown, known @ ..] if message.starts_with("unknown variant") => {
            let key = key.unwrap_or("the value");
            format!(
                "{key} cannot be \"{unknown}\"; write {}",
                known.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" or ")
            )
        }
        [missing] if message.starts_with("missing field") => {
            format!("the key \"{missing}\" is missing; add it to this table")
        }
        [twice] if message.starts_with("duplicate field") => format!("the key \"{twice}\" occurs twice; remove one"),
        _ if message.starts_with("invalid type") || message.starts_with("invalid value") => match key {
            Some(key) => format!("{key} has the wrong type: {}", typed(message)),
            None => typed(message),
        },
        _ => message.to_owned(),
    }
}

/// Replaces Rust's names of types.
fn typed(message: &str) -> String {
    let message = message.replace("invalid type: ", "").replace("invalid value: ", "");
    let message = message.replace("expected u32", "expected a whole number");
    let message = message.replace("expected a sequence", "expected a list in brackets");
    message.replace("expected struct ", "expected a table for ")
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

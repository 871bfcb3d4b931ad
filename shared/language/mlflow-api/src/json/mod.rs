//! JSON with the semantics of Python's `json` module, for reading and formatting.
//!
//! JSON that is nested in a string must be returned to clients as they sent it, with integers of
//! any length, NaN, infinities and the order of keys, none of which `serde_json` preserves.
//! Unpaired surrogates are invalid Unicode and are replaced with U+FFFD. JavaScript produces them
//! when it truncates a string in the middle of a character.
//!
//! Request bodies are read with `serde_json`. [`read_value`] also accepts some JSON that
//! `serde_json` rejects, and [`to_utf8`] converts encodings other than UTF-8.

mod encoding;
mod reader;
mod serde_values;
mod size;
#[cfg(test)]
mod tests;
mod unescape;
mod value;

pub use encoding::{is_wide, to_utf8};
pub use reader::{JsonError, MAX_DEPTH};
pub use serde_values::{read_value, without_halves};
pub use size::{MAX_TEXT_VALUES, MAX_VALUES, marks, most_values, values};
pub use unescape::unescaped;
pub use value::{Json, JsonObject};

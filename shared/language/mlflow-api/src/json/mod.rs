//! JSON with the semantics of Python's `json` module, for reading and formatting.
//!
//! JSON that is nested in a string must be returned to clients as they sent it, with integers of
//! any length, NaN, infinities and the order of keys. `serde_json` preserves none of these.
//! Unpaired surrogates are invalid Unicode and are replaced by U+FFFD. JavaScript produces them
//! when it truncates a string in the middle of a character.
//!
//! Request bodies are read with `serde_json`. [`read_value`] also accepts some JSON that
//! `serde_json` rejects, and [`in_utf8`] converts encodings other than UTF-8.

mod encoding;
mod reader;
mod size;
#[cfg(test)]
mod tests;
mod unescaped;
mod value;
mod values;

pub use encoding::{in_utf8, is_wide};
pub use reader::{DEEPEST, Unreadable};
pub use size::{MAX_TEXT_VALUES, MAX_VALUES, marks, most_values, values};
pub use unescaped::unescaped;
pub use value::{Json, Object};
pub use values::{read_value, without_halves};

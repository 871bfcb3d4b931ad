//! JSON as Python's `json` module reads and prints it.
//!
//! JSON inside of a text comes back to clients as they sent it: integers of any length, NaN and the
//! infinities, keys in their order. `serde_json` keeps none of these. Half a surrogate pair is no
//! Unicode: JavaScript writes it where it cuts a text, and U+FFFD takes its place.
//!
//! `serde_json` reads bodies. [`read_value`] also reads those that it refuses, and [`in_utf8`] those in other encodings than UTF-8.

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

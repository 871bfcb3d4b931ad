//! JSON as Python's `json` module reads and prints it.
//!
//! What clients send as JSON inside of a text comes back to them as they sent it: integers of any length, NaN and the infinities,
//! keys in their order. `serde_json` keeps none of these. Half a surrogate pair is no Unicode: JavaScript writes it where it cuts a text, and U+FFFD
//! takes its place.
//!
//! What clients send as a body is read by `serde_json`, and so again where that refuses it: [`read_value`].

mod reader;
#[cfg(test)]
mod tests;
mod value;
mod values;

pub use reader::{DEEPEST, Unreadable};
pub use value::{Json, Object};
pub use values::{read_value, without_halves};

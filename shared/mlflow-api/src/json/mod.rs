//! JSON as Python's `json` module reads and prints it.
//!
//! What clients send as JSON inside of a text comes back to them as they sent it: integers of any length, NaN and the infinities,
//! keys in their order. `serde_json` keeps none of these. Half a surrogate pair is refused, as it is no Unicode.

mod reader;
#[cfg(test)]
mod tests;
mod value;

pub use value::{Json, Object};

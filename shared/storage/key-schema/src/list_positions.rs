//! Positions in lists: the part of a key after the prefix that all keys of the list share. In a
//! list that is sorted newest first, a position is a time and an id. In a list by value, the value
//! comes before these two.

use model::{ModelId, RunId};

use crate::{Descending, Segment};

/// Returns an entity's position in a list that is sorted newest first. In a list by value, this
/// position follows the value. Positions of this form are comparable across lists.
#[must_use]
pub fn newest_first(time_ms: i64, id: &str) -> String {
    let mut place = time(time_ms);
    place.push('#');
    place.push_str(id);
    place
}

/// Returns the prefix of all positions with this time, in a list that is sorted newest first.
#[must_use]
pub fn time(time_ms: i64) -> String {
    Descending(time_ms).text()
}

/// Returns the encoded value in a position of a list by value. For a list that is sorted newest
/// first, returns the time.
#[must_use]
pub fn value(place: &str) -> &str {
    place.split_once('#').map_or(place, |(value, _)| value)
}

/// Returns the prefix of all positions with a value, given its encoded form. The separator keeps it
/// from also matching longer values.
#[must_use]
pub fn of_value(value: &str) -> String {
    format!("{value}#")
}

/// Returns the run whose id a key ends with.
#[must_use]
pub fn run(key: &str) -> Option<RunId> {
    key.rsplit('#').next().and_then(RunId::read)
}

/// Returns the start time, in ms, and the run that a key ends with.
#[must_use]
pub fn started_and_run(key: &str) -> Option<(i64, RunId)> {
    end(key)
}

/// Returns the creation time, in ms, and the logged model that a key ends with.
#[must_use]
pub fn created_and_model(key: &str) -> Option<(i64, ModelId)> {
    end(key)
}

/// Reads the time and the id at the end of a key. Only the last two segments are parsed, because a
/// text before them may be truncated.
fn end<Id: Segment>(key: &str) -> Option<(i64, Id)> {
    let mut parts = key.rsplit('#');
    let id = Id::read(parts.next()?)?;
    Some((Descending::read(parts.next()?)?.0, id))
}

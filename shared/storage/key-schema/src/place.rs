//! Places in lists: the part of a key after the beginning that all keys of the list share. Lists
//! are newest first, so a place is, or ends in, a time and an id. In lists by values, the value
//! comes before these.

use model::{ModelId, RunId};

use crate::{Descending, Segment};

/// A place in a list that is newest first, or among the places of one value: comparable across lists.
#[must_use]
pub fn newest_first(time_ms: i64, id: &str) -> String {
    let mut place = time(time_ms);
    place.push('#');
    place.push_str(id);
    place
}

/// The beginning of the places of a time, in a list that is newest first.
#[must_use]
pub fn time(time_ms: i64) -> String {
    Descending(time_ms).text()
}

/// The value of a place in a list by values, in its form in a key; in a list that is newest first, the time.
#[must_use]
pub fn value(place: &str) -> &str {
    place.split_once('#').map_or(place, |(value, _)| value)
}

/// The beginning of all places of a value, given its form in a key, and of no place of a longer
/// one.
#[must_use]
pub fn of_value(value: &str) -> String {
    format!("{value}#")
}

/// The run at the end of a key.
#[must_use]
pub fn run(key: &str) -> Option<RunId> {
    key.rsplit('#').next().and_then(RunId::read)
}

/// Start time, in ms, and run at the end of a key.
#[must_use]
pub fn started_and_run(key: &str) -> Option<(i64, RunId)> {
    end(key)
}

/// Time of creation, in ms, and logged model at the end of a key.
#[must_use]
pub fn created_and_model(key: &str) -> Option<(i64, ModelId)> {
    end(key)
}

/// A text before them may have been cut, and cannot be read then.
fn end<Id: Segment>(key: &str) -> Option<(i64, Id)> {
    let mut parts = key.rsplit('#');
    let id = Id::read(parts.next()?)?;
    Some((Descending::read(parts.next()?)?.0, id))
}

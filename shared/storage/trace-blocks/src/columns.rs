//! The columns of traces that overviews need. They take a few bytes per trace, and reading them
//! takes about a microsecond.

use entities::StoredTrace;
use entities::attributes::{Attribute, DURATION, METADATA, STATE, TAGS, Texts};
use mlflow_api::TraceId;
use mlflow_api::traces::{NAME_TAG, SESSION, TOKEN_USAGE, TraceState};

use crate::bytes::{ByteReader, put_bytes, put_count, put_signed};
use crate::trace_key::TraceKey;

/// The columns that a block stores for a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceColumns {
    /// Position of the trace in the time order.
    pub place: TraceKey,
    /// Duration of the trace in ms.
    pub duration: Option<i64>,
    /// State of the trace.
    pub state: TraceState,
    /// Value of the tag `mlflow.traceName`.
    pub name: Option<String>,
    /// Value of the metadata `mlflow.trace.session`.
    pub session: Option<String>,
    /// Value of the metadata `mlflow.trace.tokenUsage`.
    pub usage: Option<String>,
}

impl TraceColumns {
    /// Reads the columns from a document. Returns `None` if its state cannot be read.
    #[must_use]
    pub fn of(trace: &StoredTrace) -> Option<Self> {
        let item = trace.item();
        let entry = |map: Attribute<Texts>, key: &str| {
            let value = item.map(map)?.get(entities::entry_name(key).as_ref())?;
            value.as_s().ok().cloned()
        };
        Some(Self {
            place: TraceKey::of(trace),
            duration: item.get(DURATION),
            state: item.get(STATE)?,
            name: entry(TAGS, NAME_TAG),
            session: entry(METADATA, SESSION),
            usage: entry(METADATA, TOKEN_USAGE),
        })
    }
}

fn code(state: TraceState) -> u8 {
    let place = TraceState::ALL.iter().position(|known| *known == state);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or_default()
}

/// Encodes the columns of traces. Values of the same kind are stored together, because similar
/// values compress well.
pub(crate) fn write(traces: &[TraceColumns]) -> Vec<u8> {
    let mut written = Vec::new();
    put_count(&mut written, traces.len());
    let mut last = 0_i64;
    for trace in traces {
        // The difference may overflow, in which case it wraps around. Decoding reverses this.
        put_signed(&mut written, trace.place.time.wrapping_sub(last));
        last = trace.place.time;
    }
    for trace in traces {
        put_bytes(&mut written, trace.place.trace.as_str().as_bytes());
    }
    written.extend(traces.iter().map(|trace| code(trace.state)));
    written.extend(traces.iter().map(|trace| u8::from(trace.duration.is_some())));
    for duration in traces.iter().filter_map(|trace| trace.duration) {
        put_signed(&mut written, duration);
    }
    put_texts(&mut written, traces.iter().map(|trace| trace.name.as_deref()));
    put_texts(&mut written, traces.iter().map(|trace| trace.session.as_deref()));
    put_texts(&mut written, traces.iter().map(|trace| trace.usage.as_deref()));
    written
}

/// Appends a column of optional texts. It starts with flags for the traces that have a text,
/// followed by the texts.
fn put_texts<'a>(written: &mut Vec<u8>, texts: impl Iterator<Item = Option<&'a str>> + Clone) {
    written.extend(texts.clone().map(|text| u8::from(text.is_some())));
    for text in texts.flatten() {
        put_bytes(written, text.as_bytes());
    }
}

fn read_texts(reader: &mut ByteReader, count: usize) -> Option<Vec<Option<String>>> {
    let has_text = reader.take(count)?.iter().map(|has| match has {
        0 => Some(None),
        1 => Some(Some(reader.text()?.to_owned())),
        _ => None,
    });
    has_text.collect()
}

/// Decodes the columns of traces. Returns `None` if the bytes are invalid, or the traces are not in
/// time order.
pub(crate) fn read(written: &[u8]) -> Option<Vec<TraceColumns>> {
    let mut reader = ByteReader(written);
    let count = reader.count()?;
    let mut time = 0_i64;
    let times: Vec<_> = (0..count)
        .map(|_| {
            time = time.wrapping_add(reader.signed()?);
            Some(time)
        })
        .collect::<Option<_>>()?;
    let ids: Vec<_> = (0..count).map(|_| TraceId::parse(reader.text()?)).collect::<Option<_>>()?;
    let states = reader.take(count)?.iter().map(|code| TraceState::ALL.get(usize::from(*code)).copied());
    let states: Vec<_> = states.collect::<Option<_>>()?;
    let has_duration = reader.take(count)?;
    let durations = has_duration.iter().map(|has| match has {
        0 => Some(None),
        1 => reader.signed().map(Some),
        _ => None,
    });
    let durations: Vec<Option<i64>> = durations.collect::<Option<_>>()?;
    let [names, sessions, usages] = [(); 3].map(|()| read_texts(&mut reader, count));
    let (names, sessions, usages) = (names?, sessions?, usages?);
    let texts = names.into_iter().zip(sessions).zip(usages);
    let traces = times.into_iter().zip(ids).zip(states).zip(durations).zip(texts);
    let traces = traces.map(|((((time, trace), state), duration), ((name, session), usage))| TraceColumns {
        place: TraceKey { time, trace },
        duration,
        state,
        name,
        session,
        usage,
    });
    let traces: Vec<_> = traces.collect();
    let is_in_order = traces.is_sorted_by(|one, other| one.place < other.place);
    (reader.is_empty() && is_in_order).then_some(traces)
}

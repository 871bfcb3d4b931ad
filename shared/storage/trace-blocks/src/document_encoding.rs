//! Encoding of trace documents as bytes. The IDs of the traces are not included, because they are
//! stored in the columns.

use entities::StoredTrace;
use entities::attributes::{IN_BLOCK, IN_MARK};
use key_schema::definition::{PK, SK};
use key_schema::rows;
use mlflow_api::TraceId;
use table::Item;

use crate::bytes::ByteReader;
use crate::item_encoding::{put_map, read_map};

/// Appends a document. Returns `None` if one of its attributes has an unknown type.
pub(crate) fn put(written: &mut Vec<u8>, trace: &StoredTrace) -> Option<()> {
    // Where the spans are is only recorded in the trace's own document.
    let others = [PK, SK, IN_BLOCK.name(), IN_MARK.name()];
    put_map(written, &trace.item().0, |name| !others.contains(&name))
}

/// Reads the documents of the traces with these IDs. They are stored in the order of the IDs.
pub(crate) fn read<'a>(written: &[u8], ids: impl Iterator<Item = &'a TraceId>) -> Option<Vec<StoredTrace>> {
    let mut reader = ByteReader(written);
    let documents = ids.map(|id| {
        let mut item = Item::new(rows::Trace::key(id));
        item.0.extend(read_map(&mut reader)?);
        StoredTrace::of(item).ok().filter(|trace| trace.id() == id)
    });
    let documents: Option<Vec<_>> = documents.collect();
    documents.filter(|_| reader.is_empty())
}

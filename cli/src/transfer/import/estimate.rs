//! What an import takes: write units, storage, and dollars.

use super::table_writer::TableWriter;

/// Price of a million write units in us-east-1, in dollars.
const MILLION_WRITE_UNITS: f64 = 0.625;
/// Price of a GB of the table for a month in us-east-1, in dollars.
const GB_MONTH: f64 = 0.25;

#[expect(clippy::cast_precision_loss, reason = "an estimate needs few digits")]
/// Returns a sentence about the cost of what was counted.
pub(super) fn sentence(writer: &TableWriter) -> String {
    let (units, bytes) = (writer.units() as f64, writer.bytes() as f64);
    format!(
        "This import would write {:.1} MB with {units} write units. In AWS, that costs ${:.2} once and ${:.2} a month for \
         storage, and indexing the runs about as much as writing them. Nothing has been written.",
        bytes / 1e6,
        units / 1e6 * MILLION_WRITE_UNITS,
        bytes / 1e9 * GB_MONTH,
    )
}

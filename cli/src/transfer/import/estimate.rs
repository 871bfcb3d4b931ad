//! Estimates the time, write units, storage and price of an import.

use super::table_writer::TableWriter;

/// Price of a million write units in us-east-1, in dollars.
const MILLION_WRITE_UNITS: f64 = 0.625;
/// Price of a GB of the table for a month in us-east-1, in dollars.
const GB_MONTH: f64 = 0.25;
/// Write units per second of an import into a data directory on two cores, with indexing and
/// verification (`docs/guide/move.md`).
const MEASURED_UNITS_PER_SECOND: f64 = 4_500.0;

#[expect(clippy::cast_precision_loss, reason = "an estimate needs few digits")]
/// Returns a sentence about the time and the cost of the counted writes.
pub(super) fn sentence(writer: &TableWriter) -> String {
    let (units, bytes) = (writer.units() as f64, writer.bytes() as f64);
    let (speed, how) = match writer.max_units_per_second() {
        Some(maximum) => {
            (MEASURED_UNITS_PER_SECOND.min(maximum as f64), format!("with {maximum} write units per second"))
        }
        None => (MEASURED_UNITS_PER_SECOND, "into a data directory on two cores".to_owned()),
    };
    format!(
        "This import would write {:.1} MB with {units} write units. It would take {} {how}. In AWS, it costs ${:.2} once \
         and ${:.2} a month for storage, and indexing the runs about as much as writing them. Nothing has been written.",
        bytes / 1e6,
        duration(units / speed),
        units / 1e6 * MILLION_WRITE_UNITS,
        bytes / 1e9 * GB_MONTH,
    )
}

/// Formats a duration in a unit for which few digits are enough.
fn duration(seconds: f64) -> String {
    match seconds {
        ..90.0 => "about a minute at most".to_owned(),
        ..5_400.0 => format!("about {:.0} minutes", seconds / 60.0),
        _ => format!("about {:.1} hours", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_have_few_digits() {
        for (seconds, expected) in
            [(0.0, "about a minute at most"), (600.0, "about 10 minutes"), (9_000.0, "about 2.5 hours")]
        {
            assert_eq!(duration(seconds), expected);
        }
    }
}

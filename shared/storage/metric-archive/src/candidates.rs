//! The segments of a metric that may be archived: those that chart rows represent.

use std::collections::HashSet;

use entities::chart::{ChartRow, RowNumber};
use entities::{ChartProgress, RunLocation, SegmentStart, read_archived_segments};
use key_schema::{Name, Ordinal, rows};
use mlflow_api::Result;
use table::{Query, Table};

/// Which segments of a metric are in chart rows, and which are already listed as archived.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Digests of the segments that chart rows represent.
    represented: HashSet<u64>,
    /// Segments that are listed as archived. Those among them that are still in the table were left
    /// by an archiving that was interrupted.
    archived: HashSet<(SegmentStart, u64)>,
    /// Number of the next item with archived segments.
    pub(crate) next: u32,
}

impl Candidates {
    /// Reads what chart rows represent, and what is archived. Takes one request per MB: less than 4
    /// KB per chart row of the first level, which represents about 1,000 points.
    ///
    /// A segment is archived only if a chart row names it. A comparison of its start with the end
    /// of the chart rows would not suffice: a call writes late segments before it names them in the
    /// journal, so that the next packing has to find them in the table.
    pub(crate) async fn read(table: &Table, at: &RunLocation, metric: &str, charted: ChartProgress) -> Result<Self> {
        let first_level = rows::MetricChart::all(&at.run).metric(&Name::from(metric)).level(&Ordinal(1)).range();
        let (mut represented, mut number) = (HashSet::new(), 0);
        let mut next = Some(Query::of(first_level));
        while let Some(query) = next {
            let page = table.query_page(&query).await?;
            for item in &page.items {
                // Rows that no document counts may have been written by an interrupted packing,
                // and are replaced by the next one.
                if number < charted.rows {
                    let row = ChartRow::read(RowNumber { level: 1, number }, item)?;
                    represented.extend(row.digests.iter().map(|digest| digest.0));
                }
                number += 1;
            }
            next = page.next.filter(|_| number < charted.rows).map(|start| query.starting_at(start));
        }
        let lists = read_archived_segments(table, at, metric).await?;
        let archived = lists.iter().flat_map(|list| &list.segments);
        Ok(Self {
            represented,
            archived: archived.map(|segment| (segment.name.place, segment.name.digest.0)).collect(),
            next: lists.last().map_or(0, |last| last.number + 1),
        })
    }

    /// Checks whether chart rows represent the segment with this digest.
    pub(crate) fn is_represented(&self, digest: u64) -> bool {
        self.represented.contains(&digest)
    }

    /// Checks whether a segment is listed as archived.
    pub(crate) fn is_archived(&self, place: SegmentStart, digest: u64) -> bool {
        self.archived.contains(&(place, digest))
    }
}

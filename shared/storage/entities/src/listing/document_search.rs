//! Searches of documents whose partition has the default order of the search.

use key_schema::KeyRange;
use mlflow_api::Result;
use search::SortKey;
use serde::Serialize;
use table::{Item, Query, Table};

use crate::listing::{CooperativeYield, FirstEntities, ReadBudget, ResponsePage};

/// Number of documents that a search in the order of its range reads first, per entity on the page.
/// The page is then full if a twentieth of the documents meets all conditions. Reading 1 MB at once
/// takes about twice as long in the embedded engine.
const FIRST_DOCUMENTS_PER_ENTITY: usize = 20;

/// The part of a search that reads documents.
pub trait SearchedDocuments: Sync {
    /// A document that meets all conditions of the search.
    type Document: Send;
    /// An entity as it is returned to the client.
    type Entity: Serialize + Send;

    /// Parses a document. Returns it with its sort key if it meets all conditions and comes after
    /// the previous page.
    ///
    /// # Errors
    /// Returns an internal error if the item cannot be parsed.
    fn read(&self, item: Item) -> Result<Option<(SortKey, Self::Document)>>;

    /// Returns the entity of a document on the page.
    fn complete(&self, document: &Self::Document) -> impl Future<Output = Result<Self::Entity>> + Send;
}

/// Where the documents of a search are, and how many of them are read.
#[derive(Clone, Debug)]
pub struct DocumentSearch {
    /// Range of the documents.
    pub range: KeyRange,
    /// Sort key of the last entity of the previous page. If the search has the order of the range,
    /// its first text is the end of a document's sort key.
    pub after: Option<SortKey>,
    /// Whether the search has the order of the range. Otherwise, all documents are read.
    pub in_order: bool,
    /// Whether a filter, a selection or hidden entities may exclude documents. If not, queries are
    /// limited to the page size. Otherwise, the first query is limited to a multiple of the page
    /// size, and later ones read 1 MB of documents each.
    pub may_refuse: bool,
    /// Maximum number of entities on a page.
    pub page_size: usize,
}

impl DocumentSearch {
    /// Returns a page of the documents that meet all conditions. `reading` counts the reads of
    /// `table`. If the search has the order of the range, the page ends when the read budget is
    /// exhausted, unless it is empty.
    ///
    /// # Errors
    /// Returns the errors of `documents` and of the table.
    pub async fn page(
        self,
        documents: &impl SearchedDocuments,
        table: &Table,
        reading: &ReadBudget,
    ) -> Result<ResponsePage<SortKey>> {
        let Self { range, after, in_order, may_refuse, page_size } = self;
        let range = match after.as_ref().and_then(SortKey::first_text).filter(|_| in_order) {
            Some(name) => range.after(name),
            None => range,
        };
        let whole = Query::of(range);
        let (mut query, later) = match (in_order, may_refuse) {
            (true, false) => (whole.clone().limit(page_size + 1), whole.limit(page_size + 1)),
            (true, true) => (whole.clone().limit(page_size * FIRST_DOCUMENTS_PER_ENTITY + 1), whole),
            (false, _) => (whole.clone(), whole),
        };
        let (mut page, mut first) = (ResponsePage::new(page_size), FirstEntities::new(page_size));
        let mut yielding = CooperativeYield::default();
        'reading: loop {
            let read = table.query_page(&query).await?;
            for item in read.items {
                yielding.keep().await;
                let bytes = item.size();
                let Some((key, document)) = documents.read(item)? else { continue };
                if !in_order {
                    first.add(key, document, bytes);
                } else if !page.has_room_for(bytes) || !page.add(key, &documents.complete(&document).await?)? {
                    break 'reading;
                }
            }
            match read.next {
                Some(_) if in_order && reading.is_used_up() && !page.is_empty() => {
                    page.ends_here();
                    break;
                }
                Some(next) => query = later.clone().starting_at(next),
                None => break,
            }
        }
        let found = first.finish();
        let has_more = found.has_more();
        for (key, document, _) in found.entities {
            if !page.add(key, &documents.complete(&document).await?)? {
                break;
            }
        }
        if has_more {
            page.ends_here();
        }
        Ok(page)
    }
}

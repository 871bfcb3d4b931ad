//! Pages of searches whose candidates come from a list.

use mlflow_api::Result;
use mlflow_api::response_size::MAX_PAGE_JSON_BYTES;
use search::SortKey;
use serde::Serialize;

use crate::listing::{FirstEntities, ReadBudget, ResponsePage};

/// Maximum number of entities that are completed for the response at a time.
const BATCH_SIZE: usize = 100;

/// The part of a search that reads the candidates of a list.
pub trait Candidates: Sync {
    /// An entity's entry in the list.
    type Listed: Sync;
    /// An entity as it is read for the search. It need not have all parts that the client receives.
    type Found: Send;
    /// An entity as it is returned to the client.
    type Entity: Serialize + Send;

    /// Reads candidates. Returns those that pass the filter and come after the previous page, in
    /// the order of the list. Each has its sort key and its approximate size as JSON in bytes.
    fn read(&self, listed: &[Self::Listed]) -> impl Future<Output = Result<Vec<(SortKey, Self::Found, usize)>>> + Send;

    /// Reads the parts of entities that the response needs in addition to those that the search has
    /// read.
    fn complete(&self, found: Vec<Self::Found>) -> impl Future<Output = Result<Vec<Self::Entity>>> + Send;
}

/// Returns a page of at most `items` entities, found among these candidates. With `in_order`, the
/// candidates are in the order of the search, and reading stops when the page is full. Otherwise,
/// all candidates are read, with one portion in memory at a time. `reading` counts the reads of
/// `candidates`.
pub async fn fill<C: Candidates>(
    candidates: &C,
    listed: &[C::Listed],
    in_order: bool,
    items: usize,
    mut reading: ReadBudget,
) -> Result<ResponsePage<SortKey>> {
    let (mut page, mut top) = (ResponsePage::new(items), FirstEntities::new(items));
    let mut rest = listed;
    let (mut read, mut passed) = (0, 0);
    reading.begins_here();
    while !(rest.is_empty() || in_order && page.is_full()) {
        // Reads at least as many candidates as have been rejected so far, so that the number of
        // sequential requests stays small even if few candidates pass.
        let wanted = if in_order { page.missing().max(read - passed).min(rest.len()) } else { rest.len() };
        let (portion, others) = rest.split_at(reading.portion(wanted));
        rest = others;
        let found = candidates.read(portion).await?;
        reading.portion_was(portion.len());
        read += portion.len();
        passed += found.len();
        if in_order {
            add(candidates, found, &mut page).await?;
            if reading.is_used_up() && !page.is_empty() {
                break;
            }
        } else {
            for (key, found, bytes) in found {
                top.add(key, found, bytes);
            }
        }
    }
    let found = top.finish();
    let has_more = found.has_more() || !rest.is_empty();
    add(candidates, found.entities, &mut page).await?;
    if has_more {
        page.ends_here();
    }
    Ok(page)
}

/// Reads candidates in the order of the search, and adds those that pass to a page. Each round
/// reads enough candidates to fill the page, and at least as many as all previous rounds together.
/// `read` is the number of candidates read so far, and is updated. If the filter may reject
/// candidates, each round reads one more, which shows whether there is another page.
pub async fn add_listed<C: Candidates>(
    candidates: &C,
    mut rest: &[C::Listed],
    may_refuse: bool,
    page: &mut ResponsePage<SortKey>,
    reading: &mut ReadBudget,
    read: &mut usize,
) -> Result<()> {
    let one_more = usize::from(may_refuse);
    while !rest.is_empty() && !page.has_ended() {
        if page.missing() + one_more == 0 {
            page.ends_here();
            break;
        }
        let next = rest.len().min((page.missing() + one_more).max(*read));
        let (portion, others) = rest.split_at(reading.portion(next));
        add(candidates, candidates.read(portion).await?, page).await?;
        reading.portion_was(portion.len());
        *read += portion.len();
        rest = others;
        if reading.is_used_up() && !page.is_empty() && !rest.is_empty() {
            page.ends_here();
        }
    }
    Ok(())
}

/// Completes entities and adds them to a page while there is room.
pub async fn add<C: Candidates>(
    candidates: &C,
    found: Vec<(SortKey, C::Found, usize)>,
    page: &mut ResponsePage<SortKey>,
) -> Result<()> {
    let mut found = found.into_iter().peekable();
    while found.peek().is_some_and(|(.., bytes)| page.has_room_for(*bytes)) {
        let (mut keys, mut portion, mut size) = (Vec::new(), Vec::new(), 0);
        while let Some((key, entity, bytes)) = found
            .next_if(|(.., bytes)| keys.is_empty() || (keys.len() < BATCH_SIZE && size + bytes <= MAX_PAGE_JSON_BYTES))
        {
            keys.push(key);
            portion.push(entity);
            size += bytes;
        }
        for (key, entity) in keys.into_iter().zip(candidates.complete(portion).await?) {
            page.add(key, &entity)?;
        }
    }
    Ok(())
}

//! Searches of issues. A search reads the compact rows of all issues of the searched experiments,
//! and the long texts of the issues on the page.

use std::collections::HashMap;

use access::Granted;
use entities::attributes::{EXPERIMENT, TRACES};
use entities::documents::content;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, rows};
use mlflow_api::issues::IssuesResponse;
use mlflow_api::{Error, ExperimentId, IssueId, Result, Workspace};
use search::{Fingerprint, IssueFields, IssueFilter, IssueOrder, SortKey, decode_page_token, encode_page_token};
use table::{Item, Query};

use super::items::{IssueTexts, StoredIssue};
use crate::store::Store;

/// Number of issues whose texts are read in one request.
const BATCH_SIZE: usize = 100;
/// Number of these requests that are sent concurrently. If the page ends early, the result of one of
/// them is not used.
const CONCURRENT_BATCHES: usize = 2;
/// Maximum total size of the compact rows of a page's issues, in bytes. The texts of these issues
/// have the same limit. A response may be about twice as large.
const MAX_PAGE_BYTES: usize = 1_250_000;
/// Number of issues whose long texts are read concurrently.
const CONCURRENCY: usize = 8;

/// A search of the issues of one experiment or of all experiments.
#[derive(Clone, Debug)]
pub struct IssueSearch {
    /// The filter.
    pub filter: IssueFilter,
    /// The order.
    pub order: IssueOrder,
    /// Identifies the search in page tokens.
    pub fingerprint: Fingerprint,
    /// Maximum number of issues on a page.
    pub max_results: usize,
    /// Page token of the request.
    pub page_token: String,
    /// Whether the response has the numbers of traces.
    pub has_trace_counts: bool,
    /// Whether the response has the number of issues on all pages.
    pub has_total: bool,
    /// Whether the response leaves out the long texts.
    pub is_basic: bool,
}

/// The error for a text that is no token of the search.
pub(crate) fn invalid_issue_token() -> Error {
    Error::invalid("Invalid page token or token does not match the issue query")
}

impl Store {
    /// Returns a page of the issues of these experiments. For each experiment, takes one request
    /// per MB of compact rows. If the response has the numbers of traces, takes one per MB of these
    /// as well. For the texts, takes one request per 100 issues on the page, and one for each issue
    /// whose texts are long. The page ends early if the texts exceed the size of a response.
    pub async fn issue_search(
        &self,
        experiments: &[Granted<ExperimentId>],
        search: &IssueSearch,
    ) -> Result<IssuesResponse> {
        let experiments: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        self.issue_search_in(&experiments, search).await
    }

    /// Returns a page of the issues of all experiments of a workspace. Takes one request per MB of
    /// names of experiments, and the requests of [`issue_search`](Self::issue_search) in these
    /// experiments.
    pub async fn issue_search_all(&self, workspace: &Workspace, search: &IssueSearch) -> Result<IssuesResponse> {
        let names = rows::ExperimentName::all(&workspace.as_str().into());
        let names = self.table.query(Query::of(names)).await?;
        let experiments: Vec<_> = names.iter().filter_map(|name| name.get(EXPERIMENT)).collect();
        self.issue_search_in(&experiments, search).await
    }

    async fn issue_search_in(&self, experiments: &[ExperimentId], search: &IssueSearch) -> Result<IssuesResponse> {
        let after =
            decode_page_token::<SortKey>(search.fingerprint, &search.page_token).map_err(|_| invalid_issue_token())?;
        if after.as_ref().is_some_and(|after| !search.order.has_form(after)) {
            return Err(Error::invalid("Invalid issue page token"));
        }
        let (mut found, mut total) = (Vec::new(), 0_u64);
        for experiment in experiments {
            let counts =
                if search.has_trace_counts { self.issue_trace_counts(*experiment).await? } else { HashMap::new() };
            let mut query = Query::of(rows::Issue::all(experiment));
            loop {
                let page = self.table.query_page(&query).await?;
                for item in page.items {
                    let issue = StoredIssue::of(item)?;
                    let traces = counts.get(issue.id()).copied().unwrap_or_default();
                    let issue = issue.with_traces(traces);
                    if !search.filter.matches(&issue) {
                        continue;
                    }
                    total += 1;
                    let key = search.order.key(&issue);
                    if after.as_ref().is_none_or(|after| key > *after) {
                        found.push((key, issue));
                    }
                }
                found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
                found.truncate(search.max_results.saturating_add(1));
                match page.next {
                    Some(next) => query = query.starting_at(next),
                    None => break,
                }
            }
        }
        let mut has_more = found.len() > search.max_results;
        found.truncate(search.max_results);
        let mut bytes = 0;
        let mut fits = |(_, issue): &(SortKey, StoredIssue)| {
            bytes += issue.item.size();
            bytes <= MAX_PAGE_BYTES
        };
        let fitting = found.iter().map_while(|found| fits(found).then_some(())).count().max(1);
        has_more |= found.len() > fitting;
        found.truncate(fitting);
        let mut issues = Vec::with_capacity(found.len());
        if search.is_basic {
            issues
                .extend(found.iter().map(|(_, issue)| issue.response(IssueTexts::default(), search.has_trace_counts)));
        } else {
            let mut bytes = 0;
            let reads: Vec<_> = found.chunks(BATCH_SIZE).map(|batch| self.issue_text_items(batch)).collect();
            let mut reads = stream::iter(reads).buffered(CONCURRENT_BATCHES);
            while let Some((batch, items)) = reads.try_next().await? {
                let texts = self.issue_texts_of(batch, items, &mut bytes).await?;
                let is_full = texts.len() < batch.len();
                let read = batch.iter().zip(texts);
                issues.extend(read.map(|((_, issue), texts)| issue.response(texts, search.has_trace_counts)));
                if is_full {
                    has_more = true;
                    break;
                }
            }
        }
        let last = issues.len().checked_sub(1).and_then(|last| found.get(last)).filter(|_| has_more);
        let next_page_token = match last {
            Some((key, _)) => encode_page_token(search.fingerprint, key)?,
            None => String::new(),
        };
        Ok(IssuesResponse { issues, next_page_token, total_count: search.has_total.then_some(total) })
    }

    /// Reads the items that contain the texts of up to [`BATCH_SIZE`] issues. Takes one request.
    async fn issue_text_items<'a>(
        &self,
        issues: &'a [(SortKey, StoredIssue)],
    ) -> Result<(&'a [(SortKey, StoredIssue)], HashMap<Key, Item>)> {
        let keys: Vec<_> = issues.iter().map(|(_, issue)| issue.content_key()).collect();
        Ok((issues, self.table.get_many(&keys).await?))
    }

    /// Returns the texts of issues from their items, until they exceed the size of a response. Reads
    /// long texts from rows of their own. `bytes` is the size of all texts of the page so far, and
    /// is increased.
    async fn issue_texts_of(
        &self,
        issues: &[(SortKey, StoredIssue)],
        mut items: HashMap<Key, Item>,
        bytes: &mut usize,
    ) -> Result<Vec<IssueTexts>> {
        let is_first = *bytes == 0;
        let mut fitting: Vec<(ExperimentId, Item)> = Vec::new();
        for (_, issue) in issues {
            let key = issue.content_key();
            // The texts of an issue that was removed in the meantime are missing.
            let item = items.remove(&key).unwrap_or_else(|| Item::new(key));
            *bytes += content::size(&item);
            if *bytes > MAX_PAGE_BYTES && !(is_first && fitting.is_empty()) {
                break;
            }
            fitting.push((issue.experiment(), item));
        }
        let texts = fitting.into_iter().map(|(experiment, item)| async move {
            if content::size(&item) == 0 {
                return Ok(IssueTexts::default());
            }
            Ok::<_, Error>(self.issue_texts(experiment, item).await?.1)
        });
        stream::iter(texts.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await
    }

    /// Returns the numbers of traces per issue. Takes one request per MB.
    async fn issue_trace_counts(&self, experiment: ExperimentId) -> Result<HashMap<String, i64>> {
        let items = self.table.query(Query::of(rows::IssueTraces::all(&experiment))).await?;
        let counts = items.iter().filter_map(|item| {
            let issue: IssueId = rows::IssueTraces::parse(&item.key()?)?.issue;
            Some((issue.to_string(), item.get(TRACES)?))
        });
        Ok(counts.collect())
    }
}

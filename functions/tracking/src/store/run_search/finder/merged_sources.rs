//! Merges the candidates of several sources.

use futures::future::try_join_all;
use mlflow_api::Result;
use run_index::{Candidate, CandidateSource};
use table::Table;

/// Candidates from several sources, merged in the order of the search.
pub(super) struct MergedSources<'a> {
    table: &'a Table,
    sources: Vec<CandidateSource>,
    /// Next candidate of each source.
    fronts: Vec<Option<Candidate>>,
    /// Whether the sources read their lists in the reverse order of their keys.
    backwards: bool,
    /// The candidate that was taken last, without its copy.
    last: Option<Candidate>,
}

impl<'a> MergedSources<'a> {
    /// Merges these sources, and reads the first candidate of each.
    pub(super) async fn start(table: &'a Table, mut sources: Vec<CandidateSource>, backwards: bool) -> Result<Self> {
        let fronts = first_candidates(table, &mut sources).await?;
        Ok(Self { table, sources, fronts, backwards, last: None })
    }

    /// Replaces all sources with a single one.
    pub(super) async fn replace(&mut self, source: CandidateSource) -> Result<()> {
        self.sources = vec![source];
        self.fronts = first_candidates(self.table, &mut self.sources).await?;
        Ok(())
    }

    /// Takes the next candidate, or returns `None` at the end. If the next candidates of several
    /// sources are equal, they are taken in the order of the sources.
    pub(super) async fn next(&mut self) -> Result<Option<Candidate>> {
        let fronts = self.fronts.iter().enumerate().filter_map(|(place, front)| Some((place, front.as_ref()?)));
        let first = fronts.min_by(|(_, a), (_, b)| a.order(b, self.backwards));
        let Some((place, _)) = first else { return Ok(None) };
        let next = self.sources[place].next(self.table).await?;
        let Some(candidate) = std::mem::replace(&mut self.fronts[place], next) else { return Ok(None) };
        let mut last = candidate.clone();
        last.item = None;
        self.last = Some(last);
        Ok(Some(candidate))
    }

    /// Checks whether there are no more candidates.
    pub(super) fn is_at_end(&self) -> bool {
        self.fronts.iter().all(Option::is_none)
    }

    /// Checks whether a page may end after the candidate that was taken last.
    pub(super) fn page_may_end(&self) -> bool {
        let next = self.fronts.iter().flatten().min_by(|a, b| a.order(b, self.backwards));
        next.zip(self.last.as_ref()).is_some_and(|(next, last)| next.may_end_before(last))
    }
}

async fn first_candidates(table: &Table, sources: &mut [CandidateSource]) -> Result<Vec<Option<Candidate>>> {
    try_join_all(sources.iter_mut().map(|source| source.next(table))).await
}

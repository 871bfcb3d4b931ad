//! Takes candidates in their order until the page is full.

use mlflow_api::Result;
use run_index::{Candidate, CandidateSource};

use super::list_intersection::ListIntersection;
use super::merged_sources::MergedSources;
use super::run_finder::RunFinder;
use super::run_source::RunToRead;
use super::search_progress::{PageEnd, Progress};

/// Maximum number of bytes of run copies held in memory, for searches in order of time.
const MAX_BATCH_BYTES: usize = 8 << 20;

impl RunFinder<'_> {
    /// Takes candidates in their order until the page is full.
    pub(crate) async fn fill_page(&mut self, sources: Vec<CandidateSource>) -> Result<()> {
        self.try_to_fill_page(sources, None).await.map(drop)
    }

    /// Takes candidates in their order until the page is full, or gives up after `trial` candidates
    /// if fewer than one in four of them passed. Returns whether the search is complete, because
    /// the page is full or there are no more candidates.
    pub(crate) async fn try_to_fill_page(
        &mut self,
        sources: Vec<CandidateSource>,
        trial: Option<usize>,
    ) -> Result<bool> {
        self.reading.begins_here();
        let (table, backwards) = (self.planned.table, self.planned.reads_backwards());
        let mut candidates = MergedSources::start(table, sources, backwards).await?;
        // If all candidates pass, the next candidate in a list already shows that there is another
        // page, so no additional run has to be read.
        let all_pass = self.planned.all_candidates_pass();
        let search = self.planned.search;
        let wanted = if all_pass { search.page_size } else { search.runs_to_find() };
        let (mut progress, mut intersection) = (Progress::new(wanted, trial), ListIntersection::default());
        loop {
            let batch_size = self.reading.portion(progress.next_batch_size());
            if self.narrow_down(&mut candidates, &mut intersection, &progress).await? {
                return Ok(true);
            }
            let batch = self.next_batch(&mut candidates, &intersection, batch_size).await?;
            let examined = batch.len();
            let passed = self.examine_candidates(batch).await?;
            progress.record(examined, passed);
            self.reading.portion_was(examined);
            if candidates.is_at_end() || candidates.page_may_end() && self.end_page(&progress, all_pass) {
                return Ok(true);
            }
            if progress.has_failed_trial() {
                return Ok(false);
            }
        }
    }

    /// Narrows the candidates down by reading further lists, if so few candidates pass that this is
    /// cheaper than reading more candidates. Returns whether the search is complete because the
    /// lists had few runs in common and all of these runs were examined.
    async fn narrow_down(
        &mut self,
        candidates: &mut MergedSources<'_>,
        intersection: &mut ListIntersection,
        progress: &Progress,
    ) -> Result<bool> {
        let planned = self.planned;
        let limit = planned.plan.narrow_limit(progress.examined, progress.passed.runs, progress.missing());
        let Some(runs) = intersection.read(&planned, limit).await? else { return Ok(false) };
        let left = runs.iter().filter(|(at, _)| !self.examined.contains(*at));
        if runs.len() <= progress.wanted.saturating_mul(2) {
            // The number of remaining runs is so small that reading and sorting all of them is
            // faster than following the lists.
            let left = left.map(|(at, started)| {
                let source = planned.source_of(at, *started, None);
                RunToRead { at: at.clone(), source }
            });
            let left = left.collect();
            self.examine(left).await?;
            return Ok(true);
        }
        if planned.reads_copies_by_time() && planned.search.is_newest_first() {
            // The remaining runs become the only source of candidates. They are read by key, so
            // that the runs between them are skipped.
            let left = left.map(|(at, started)| (at.clone(), *started));
            candidates.replace(planned.gathered_source(left)).await?;
        }
        Ok(false)
    }

    /// Takes the next candidates that may pass and have not been examined.
    async fn next_batch(
        &mut self,
        candidates: &mut MergedSources<'_>,
        intersection: &ListIntersection,
        size: usize,
    ) -> Result<Vec<Candidate>> {
        let (mut batch, mut in_memory) = (Vec::new(), 0);
        while batch.len() < size && in_memory < MAX_BATCH_BYTES {
            let Some(candidate) = candidates.next().await? else { break };
            let may_pass =
                intersection.may_contain(&candidate.at) && self.planned.plan.started.contains(candidate.started);
            if may_pass && self.examined.insert(candidate.at.clone()) {
                in_memory += candidate.item.as_ref().map_or(0, |item| item.size());
                batch.push(candidate);
            }
        }
        Ok(batch)
    }

    /// Ends the page after the last candidate if the page is full, or if the read budget or the
    /// response size is exhausted. Returns whether the page ended.
    fn end_page(&mut self, progress: &Progress, all_pass: bool) -> bool {
        match progress.page_end(self.reading.is_used_up()) {
            // Because all candidates pass, the one that follows shows that there is another page.
            Some(PageEnd::Full) if all_pass => self.collector.has_more(),
            // One run more than fits on the page was found, which already shows that there is
            // another page.
            Some(PageEnd::Full) => {}
            Some(PageEnd::CutOff(last)) => self.collector.cut_off_after(last),
            None => return false,
        }
        true
    }
}

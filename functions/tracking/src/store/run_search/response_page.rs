//! Step 8: writes the response, with as many of the found runs as fit.

use entities::listing::ResponsePage;
use mlflow_api::Result;
use mlflow_api::tracking::SearchRunsResponse;
use search::SortKey;

use super::finder::FoundRuns;
use super::request::RunSearch;
use crate::store::Store;
use crate::store::run::RunDatasets;

impl Store {
    /// Returns the response of a search: the runs that fit on the page, and the token of the next
    /// page.
    pub(super) async fn run_page(&self, found: FoundRuns, search: &RunSearch) -> Result<SearchRunsResponse> {
        let page = self.filled_page(found, search).await?;
        let (runs, next_page_token) = page.finish(search.fingerprint)?;
        Ok(SearchRunsResponse { runs, next_page_token })
    }

    /// Returns as many of the found runs as fit on the page, with their datasets. Takes one request
    /// per 100 datasets, and one more for each run with large datasets.
    async fn filled_page(&self, found: FoundRuns, search: &RunSearch) -> Result<ResponsePage<SortKey>> {
        let FoundRuns { mut runs, has_more } = found;
        let mut page = ResponsePage::new(search.page_size);
        let mut datasets = RunDatasets::new(&self.table);
        let mut loaded = 0;
        for place in 0..runs.len() {
            if place == loaded {
                loaded += datasets.load(runs[place..].iter().map(|found| &found.run)).await?;
            }
            let found = &mut runs[place];
            if !page.has_room_for(datasets.size(&found.run)) {
                break;
            }
            datasets.fill(&mut found.run).await?;
            // In MLflow, searches return the models that runs produced, but not those that they
            // read.
            found.run.inputs.model_inputs.clear();
            if search.hides_models {
                found.run.hide_models();
            }
            page.add(found.key.clone(), &found.run)?;
            found.run.inputs.dataset_inputs = Vec::new();
        }
        if has_more {
            page.ends_here();
        }
        Ok(page)
    }
}

//! MLflow's search language: filters, orderings, page tokens, and query planning.
//!
//! Everything in this crate is a pure function of its arguments. It does no I/O and does not access
//! the table. A search goes through the following steps. Their order ensures that the mistakes in a
//! request are reported in the same order as in MLflow.
//!
//! 1. [`parse_run_search`] parses the filter and the ordering.
//! 2. [`Fingerprint::of_run_search`] and [`decode_page_token`] determine where the page begins.
//! 3. [`RunOptions::of`] and [`choose`] plan which lists and runs are read.
//! 4. [`RunFilter::matches`] filters runs, and [`RunOrder::key`] sorts them.
//! 5. [`encode_page_token`] creates the token of the next page from the sort key of the last run.
//!
//! A **page token** encodes where the next page begins. A **fingerprint** is a hash of the search
//! that a page token belongs to. A **token** of a text is one of its trigrams, under which the text
//! is indexed.
//!
//! Experiments use [`parse_experiment_search`], [`ExperimentFilter::matches`] and
//! [`ExperimentOrder::key`]. Evaluation datasets use [`parse_dataset_search`],
//! [`DatasetFilter::matches`] and [`DatasetOrder::key`]. Logged models have a different grammar,
//! with [`parse_model_filter`], [`parse_model_order`], [`ModelFilter::matches`] and
//! [`ModelOrder::key`]. [`parse_registered_model_search`] and [`parse_version_search`] are for the
//! model registry. The module `trace` contains the grammar of trace searches and its evaluation.
//!
//! Strings are compared and sorted by their UTF-8 bytes, as in SQLite. The behaviour is that of
//! MLflow 3.17.2 on SQLite with the option `case_sensitive_like`, except that `ILIKE` ignores the
//! case of all letters.

mod comparison;
mod evaluate;
mod evaluation_dataset;
pub mod fields;
mod filter;
mod fingerprint;
mod identifier;
mod issue;
mod like;
mod literal_list;
mod literals;
mod mcp;
mod model_fields;
mod model_order;
mod model_page_token;
mod order_by;
mod page_token;
mod plan;
mod python_repr;
mod range;
mod registry;
mod run_conditions;
mod shell_words;
mod size_limits;
mod skill;
mod sort_key;
mod syntax;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod trigram_tokens;
mod unchecked_comparison;

pub use evaluate::{DatasetInputFields, ExperimentFields, RunFields};
pub use evaluation_dataset::{
    DatasetFields, DatasetFilter, DatasetNumber, DatasetOrder, DatasetPredicate, DatasetSortBy, DatasetText,
    parse_dataset_filter, parse_dataset_order_by, parse_dataset_search,
};
pub use fields::{CommonFields, IndexedFields};
pub use filter::{
    Comparator, DatasetField, ExperimentFilter, ExperimentNumber, ExperimentPredicate, KeyTest, ModelAttribute,
    ModelCode, ModelFilter, ModelPredicate, ModelText, ModelTime, RunFilter, RunNumber, RunPredicate, RunText,
    TextTest, parse_experiment_filter, parse_model_filter, parse_run_filter,
};
pub use fingerprint::Fingerprint;
pub use issue::{IssueFields, IssueFilter, IssueOrder, IssueQuery, parse_issue_search};
pub use like::LikePattern;
pub use literals::FilterNumber;
pub use mcp::{McpEntity, McpFields, McpFilter, McpOrder, McpText, McpTime, parse_mcp_search};
pub use model_fields::{MeasuredPoint, ModelFields};
pub use model_order::{ModelOrder, ModelOrderBy, ModelSortBy, parse_model_order};
pub use model_page_token::ModelPageTokens;
pub use order_by::{
    ExperimentOrder, ExperimentSortBy, OrderTerm, RunOrder, RunSortBy, SortDirection, parse_experiment_order_by,
    parse_run_order_by,
};
pub use page_token::{check_page_token, decode_page_token, encode_page_token, is_encoded_json};
pub use plan::{
    AccessPath, ListHead, ListHeads, MetricColumn, PlanCondition, PlanCost, PlanOrder, PlanSortBy, RunColumn, RunList,
    RunOptions, RunPlan, RunWalk, by_time, choose, tests_of_keys,
};
pub use range::{NumberRange, TextRange, TimeRange};
pub use registry::{
    RegisteredModelFields, RegisteredModelFilter, RegisteredModelOrder, RegisteredModelSortBy, TagTests, VersionFields,
    VersionFilter, VersionNumberTest, VersionOrder, VersionSortBy, parse_registered_model_search, parse_version_search,
};
pub use skill::{SkillEntity, SkillFields, SkillFilter, SkillNumber, SkillOrder, SkillText, parse_skill_search};
pub use sort_key::{FirstValue, SortKey};

use mlflow_api::Result;

/// Parses the filter and the ordering of a run search.
///
/// MLflow parses the filter, then the ordering, and only then checks whether each comparator of the
/// filter is valid for its field. If there are several mistakes, the first one in that order is
/// reported.
pub fn parse_run_search(filter: &str, order_by: &[String]) -> Result<(RunFilter, RunOrder)> {
    let draft = filter::UncheckedRunFilter::read(filter)?;
    let order = parse_run_order_by(order_by)?;
    Ok((draft.finish()?, order))
}

/// Parses the filter and the ordering of an experiment search.
pub fn parse_experiment_search(filter: &str, order_by: &[String]) -> Result<(ExperimentFilter, ExperimentOrder)> {
    Ok((parse_experiment_filter(filter)?, parse_experiment_order_by(order_by)?))
}

/// Returns the number of random cases for an expensive test: a quarter of them by default, or all
/// in `make test-slow`.
#[cfg(test)]
fn dear_cases(all: u32) -> u32 {
    if std::env::var_os("ALL_SEARCHES").is_some() { all } else { all / 4 }
}

//! The contents of the table's items, and the code that reads entities from them.
//!
//! Functions write these items. The indexer reads them and writes copies that searches read. All of
//! them share the code in this crate, so that each stored format is defined once. Keys and
//! attribute names are in `key-schema`, and requests are sent by `table`.
//!
//! | module | what it contains |
//! |---|---|
//! | [`archived_objects`] | which objects of the archive exist, and when they are deleted |
//! | [`documents`] | documents that are changed in parts: params and tags in maps, or in rows |
//! | [`experiments`] | whether an experiment and its runs may be written to, and leases on that |
//! | [`trace_retention`] | how long traces are kept |
//! | [`trace_archival`] | when traces are archived, and where |
//! | [`listing`] | pages of the lists and searches of every domain |
//! | [`webhooks`] | webhooks, their subscriptions, and the rows of events |
//! | [`workspaces`] | creating and deleting workspaces, and their usage |
//! | [`journal`], [`points`], [`chart`] | stored formats of metric points |
//! | [`indexed_fields_setting`] | the indexed fields of an experiment |
//! | [`layout`], [`migration`] | the layout's version, and the steps from one version to the next |

pub mod archived_objects;
mod archived_segments;
pub mod chart;
mod chart_progress;
mod client_request;
pub mod compressed_content;
mod compressed_points;
pub mod documents;
pub mod experiments;
pub mod indexed_fields_setting;
mod indexing_state;
mod issue_location;
pub mod journal;
pub mod layout;
pub mod listing;
mod logged_model;
mod logged_model_points;
mod mcp_server_removal;
mod metric_segment;
mod metrics;
pub mod migration;
mod param_and_tag_maps;
pub mod points;
pub mod quota;
mod registry_item;
mod reviewed_traces;
mod run;
mod run_copy;
mod run_items;
mod run_links;
mod run_location;
mod run_metrics;
mod run_times;
mod searchable_run;
mod stage;
mod trace;
pub mod trace_archival;
mod trace_pointer;
pub mod trace_retention;
mod trace_stub;
mod unreadable_item;
pub mod webhooks;
mod workspace;
pub mod workspaces;

pub use key_schema::attributes;
pub use key_schema::attributes::{metric_attribute, metric_of};
pub use runtime::clock::{Moment, now_ms};

pub use archived_segments::{
    ArchivedSegment, ArchivedSegments, MAX_UNARCHIVED_POINTS, object_of_segments, read_archived_segments,
};
pub use chart_progress::{ChartProgress, charted, with_charted};
pub use client_request::{client_request_entry, is_found_by_client_request, traces_of_client_request};
pub use indexing_state::{
    DocumentAttributes, IndexingResult, IndexingState, MarkOutcome, MarkUpdate, Reliance, marked_item,
};
pub use issue_location::locate_issue;
pub use logged_model::{
    ModelItems, ModelLocation, group_by_model, locate_model, model_whole, read_model_items, read_model_segments,
    read_models, waiting_model_points,
};
pub use logged_model_points::{ModelPoint, ModelSeries, pack_model_segments, unpack_model_segment};
pub use mcp_server_removal::finish_mcp_server_removal;
pub use metric_segment::{
    MIN_SEGMENT_POINTS, SegmentEncoding, SegmentName, SegmentStart, decode_segment, read_segment, segments,
};
pub use metrics::{latest, pack_set, waiting};
pub use param_and_tag_maps::{entries, entry_key, entry_name};
pub use registry_item::{read_entries, read_texts, registry_item, unchanged_document, with_entries, with_texts};
pub use reviewed_traces::{
    MAX_REVIEWS_IN_TRANSACTION, issue_count_writes, queues_of, remove_late_reviews, reviews_of_traces,
};
pub use run::{run_artifact_uri, run_info, run_whole};
pub use run_copy::{RUN_ENTITY_TYPE, RunCopy, own_stage};
pub use run_items::{RunItems, read_all_runs, read_run_items, read_runs};
pub use run_links::{dataset_digest, dataset_key, dataset_link, is_dataset, run_inputs, run_outputs};
pub use run_location::{RunLocation, locate_run};
pub use run_metrics::{
    MetricsStorage, RunMetrics, packed, place_of_metrics, read_journal_and_documents, read_run_metric, read_run_metrics,
};
pub use run_times::{CLOSING_MS, MARK_RELIANCE_DURATION};
pub use searchable_run::{SearchableRun, find, searched_dataset};
pub use stage::{
    ExperimentState, being_removed, experiment_of_name, experiment_state, run_deleted_since, run_stage, unchanged_stage,
};
pub use trace::{POINTER, StoredTrace, judges_a_session};
pub use trace_pointer::{LocatedTrace, TracePointer, TraceRow, locate_traces, read_trace_rows};
pub use trace_stub::{TraceItem, TraceStub};
pub use unreadable_item::{failed, read_all, unreadable};
pub use workspace::{WorkspaceIdentity, closed, if_closed, in_workspace, workspace_key, workspace_named};

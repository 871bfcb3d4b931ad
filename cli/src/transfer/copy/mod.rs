//! `mlflow-serverless copy`: moves a whole table, item by item, into an empty one.
//!
//! The source is a data directory, or an export to S3 of a table in AWS. A table in AWS is not read
//! directly, because this would require a scan. All items of the data table are copied as they are,
//! with the same layout, except for webhooks (`webhook_items.rs`). Items are read in an order that
//! is the same each time, so an interrupted copy continues after the items that it has already
//! written.
//!
//! Items with a mark for the indexer are copied last. As soon as they are in a table in AWS, the
//! indexer of the stack processes them, and writes to the table, too. They are only written if they
//! are missing, because an earlier attempt may have written them, and the indexer may have changed
//! them since then.

mod access_items;
mod data_directory;
mod dynamodb_json;
mod export_manifest;
mod export_reader;
mod item_batch;
mod options;
mod source;
mod target;
mod webhook_items;

use embedded_engine::{Engine, StreamReader};
use entities::attributes::TO_PACK;
use entities::layout;
use indicatif::{ProgressBar, ProgressStyle};
use key_schema::index::RunsChanged;
use key_schema::{IndexEntry, Key};
use table::{Item, Table};

pub(crate) use options::Options;

use access_items::{copy_access, has_users};
use source::CopySource;
use target::{CopyProgress, CopyTarget};

use crate::Failure;
use crate::output::print_line;
use crate::transfer::import::TableWriter;

/// Number of items after which the progress of the copy is recorded in the target.
const RECORD_INTERVAL: u64 = 10_000;
/// Prefix of the keys of partitions that contain grants given directly to users.
const USER_PREFIX: &str = "USER#";

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (source, setting) = match (&options.from, &options.from_export) {
        (Some(directory), _) => {
            options.place.check_is_not_in(directory)?;
            CopySource::directory(directory, &options.from_table).await?
        }
        (None, Some(export)) => CopySource::export(export, options.users_from_export.as_deref()).await?,
        (None, None) => return Err("give --from or --from-export".into()),
    };
    let with_users = options.users || options.users_from_export.is_some();
    let (table, engine) = options.place.connect().await?;
    let table = table.in_background();
    if !table.is_there().await.map_err(|failure| format!("cannot check for the table: {failure:?}"))? {
        options.place.create(&table, options.create_table).await?;
    }
    let claimed = claim_engine(engine.as_ref(), &table, &options).await?;
    let access = options.place.access_table(&table);
    if with_users {
        options.place.create_access(&access, options.create_table).await?;
        if !options.resume && has_users(&access).await? {
            return Err(format!("the table {} already has users: copy into an empty one", access.name()).into());
        }
    }
    // Only the last write, which deletes the claim, waits for the disk. It reaches the disk after
    // all earlier writes, so the other writes do not have to wait.
    let writer = |table: &Table| {
        let client = engine.as_ref().map(Engine::client_ahead_of_disk);
        let table = client.map_or_else(|| table.clone(), |client| Table::new(client, table.name()));
        TableWriter::new(table, false, options.write_units)
    };
    let identity = source.identity() + if with_users { " and its users" } else { "" };
    let (target, progress) = CopyTarget::open(&table, writer(&table), identity, options.resume).await?;
    let copy = Copy { source, target, setting_key: layout::key(), with_users };

    let bar = ProgressBar::new(copy.source.count());
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} items copied, {eta} left")?);
    let counts = copy.unmarked(progress, &bar).await?;
    if counts.marked > 0 {
        copy.marked().await?;
    }
    bar.finish_and_clear();
    let users = if with_users { copy_access(&copy.source, &writer(&access)).await? } else { 0 };
    let copied = copy.source.count() - counts.left_out - counts.transient;
    if let Some(engine) = &engine {
        // The numbers are comparable: the target still has the claim in place of the layout.
        let found = data_directory::size(engine, table.name()).await?.items;
        if found != copied {
            return Err(format!("the table {} has {found} items, and should have {copied}", table.name()).into());
        }
    }
    copy.target.finish(setting).await?;
    drop(claimed);
    print_line(&format!("{copied} items and {users} users copied"));
    if counts.left_out > 0 {
        print_line(&format!("{} grants of users left out: they are copied together with users", counts.left_out));
    }
    Ok(())
}

/// Claims the stream of a table in the embedded engine. While it is claimed, no server indexes the
/// table, and the stream only keeps the records that the indexer needs.
async fn claim_engine(
    engine: Option<&Engine>,
    table: &Table,
    options: &Options,
) -> Result<Option<StreamReader>, Failure> {
    let Some(engine) = engine else { return Ok(None) };
    let claimed = data_directory::claim(engine, table, options.place.storage.directory()).await?;
    let is_empty = data_directory::size(engine, table.name()).await?.items == 0;
    // For a table in use and for an interrupted copy, `CopyTarget::open` reports a better
    // explanation.
    if !is_empty && matches!(layout::read(table, layout::CURRENT_LAYOUT).await, Ok(None)) {
        return Err(format!("the table {} is not empty: copy into an empty one", table.name()).into());
    }
    Ok(Some(claimed))
}

struct Copy {
    source: CopySource,
    target: CopyTarget,
    setting_key: Key,
    with_users: bool,
}

/// Counts of the source's items that the first pass does not copy.
#[derive(Debug, Default)]
struct ItemCounts {
    /// Items with a mark for the indexer, which are copied last.
    marked: u64,
    /// Direct grants of users, which are left out if users are not copied.
    left_out: u64,
    /// Events and deliveries of webhooks, which are not copied.
    transient: u64,
}

impl Copy {
    /// Copies the items without a mark for the indexer, from the recorded progress on.
    async fn unmarked(&self, progress: CopyProgress, bar: &ProgressBar) -> Result<ItemCounts, Failure> {
        let done = match progress {
            CopyProgress::Items(count) => count,
            CopyProgress::OnlyMarked => u64::MAX,
        };
        let (mut position, mut recorded, mut counts) = (0, 0, ItemCounts::default());
        let mut batches = self.source.items();
        while let Some(batch) = batches.recv().await {
            let batch = batch?;
            position += batch.len() as u64;
            let mut first = Vec::new();
            for item in batch {
                if self.leaves_out(&item) {
                    counts.left_out += 1;
                } else if is_transient(&item) {
                    counts.transient += 1;
                } else if is_marked(&item) {
                    counts.marked += 1;
                } else if item.key().as_ref() != Some(&self.setting_key) {
                    first.push(webhook_items::copied(item));
                }
            }
            if position > done {
                self.target.put(first).await?;
                if position - recorded >= RECORD_INTERVAL {
                    self.target.record(CopyProgress::Items(position)).await?;
                    recorded = position;
                }
            }
            bar.set_position(position);
        }
        let expected = self.source.count();
        if position != expected {
            return Err(format!("the source has {position} items, and had {expected} when the copy began").into());
        }
        self.target.record(CopyProgress::OnlyMarked).await?;
        Ok(counts)
    }

    /// Copies the items with a mark for the indexer, unless the target has them already.
    async fn marked(&self) -> Result<(), Failure> {
        let mut batches = self.source.items();
        while let Some(batch) = batches.recv().await {
            let marked = batch?.into_iter().filter(|item| is_marked(item) && !self.leaves_out(item));
            self.target.put_missing(marked.collect()).await?;
        }
        Ok(())
    }

    /// Returns whether an item is left out. If users are not copied, their direct grants are not
    /// copied either, because a grant contains the user's id, which may belong to another user in
    /// the target.
    fn leaves_out(&self, item: &Item) -> bool {
        !self.with_users && item.key().is_some_and(|key| key.pk.starts_with(USER_PREFIX))
    }
}

/// Returns whether an item belongs to an event or a delivery of a webhook.
fn is_transient(item: &Item) -> bool {
    item.key().is_some_and(|key| webhook_items::is_transient(&key))
}

/// Returns whether an item has a mark for the indexer.
fn is_marked(item: &Item) -> bool {
    item.is_in(RunsChanged::INDEX) || item.has(TO_PACK)
}

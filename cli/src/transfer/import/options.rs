//! Options of `import`.

use auth::store::Store;
use clap::Args;
use embedded_engine::Engine;
use entities::{SegmentEncoding, layout};
use mlflow_api::{ExperimentId, Workspace};
use table::Table;

use super::artifact_mapping::ArtifactMapping;
use super::context::{ImportContext, ImportScope};
use super::remapped_ids::RemappedIds;
use super::report::ImportReport;
use super::secret_transfer::SecretTransfer;
use super::table_writer::TableWriter;
use crate::table_options::TableOptions;
use crate::transfer::database::DatabaseUri;
use crate::transfer::source::Source;
use crate::transfer::users::UserDatabase;
use crate::{Failure, admin};

/// Tables whose rows are counted for the progress bar. Each of their rows is an entity of its own.
const COUNTED_TABLES: [&str; 8] = [
    "experiments",
    "runs",
    "logged_models",
    "trace_info",
    "registered_models",
    "model_versions",
    "evaluation_datasets",
    "scorers",
];

/// Options of `import`.
#[derive(Args)]
pub(crate) struct Options {
    /// Database of an MLflow tracking server, such as `sqlite:///mlflow.db`,
    /// or <mysql://user:password@host/mlflow>. It is only read.
    #[arg(long, value_name = "URI", required_unless_present = "users_from")]
    from: Option<DatabaseUri>,
    /// Database of users of MLflow's basic authentication, such as `sqlite:///basic_auth.db`. Users
    /// get no passwords. Users and roles that already exist on this server are not changed.
    #[arg(long, value_name = "URI")]
    users_from: Option<DatabaseUri>,
    /// Import only this experiment, with its runs, logged models, traces and scorers.
    #[arg(long, value_name = "ID", conflicts_with = "workspace", requires = "from")]
    experiment: Option<String>,
    /// Import only the contents of this workspace.
    #[arg(long, value_name = "NAME", requires = "from")]
    workspace: Option<String>,
    /// Replace this prefix of artifact locations, such as <s3://old/mlflow=s3://new/mlflow>. Files are
    /// not copied.
    #[arg(long, value_name = "FROM=TO")]
    artifacts: Vec<ArtifactMapping>,
    /// Where the MLflow server stores `mlflow-artifacts:/`: a directory, or a bucket
    /// (<s3://bucket/path>). Spans of traces may be files there [default: the directory next to the
    /// data where this server stores artifacts].
    #[arg(long, value_name = "URI")]
    artifacts_destination: Option<String>,
    /// Also check that the artifacts of runs, logged models, model versions, traces and skills exist below
    /// `--artifacts-destination`, which is where this server stores them. Fails if files are missing.
    #[arg(long, requires = "from")]
    check_artifacts: bool,
    /// Write at most this many capacity units per second, so that a stack in use has enough left
    /// [default: as fast as possible].
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(u64).range(1..))]
    write_units: Option<u64>,
    /// Report what would be imported, how long it would take and what it would cost, without writing
    /// anything.
    #[arg(long)]
    dry_run: bool,
    /// Key that encrypts the secrets of webhooks on this server: the file of `serve --secrets-key`,
    /// which is created if it does not exist, or the ARN of the stack's KMS key. The environment
    /// variable `MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY` has the key of the MLflow server.
    #[arg(long, value_name = "FILE", requires = "from")]
    secrets_key: Option<String>,
    /// Give entities another id or name if theirs is taken. The old one is recorded in a tag.
    #[arg(long)]
    remap: bool,
    #[command(flatten)]
    place: TableOptions,
}

impl Options {
    /// Opens the source, if one is given.
    pub(super) async fn source(&self) -> Result<Option<Source>, Failure> {
        match &self.from {
            Some(uri) => Source::open(uri).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens the database of users, if one is given.
    pub(super) async fn users(&self) -> Result<Option<UserDatabase>, Failure> {
        match &self.users_from {
            Some(uri) => UserDatabase::open(uri).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the store of users, for an import that only has users.
    pub(super) async fn user_store(&self) -> Result<Store, Failure> {
        admin::store(&self.place).await
    }

    /// Returns the store of the users that belong to a table that is already open.
    pub(super) async fn user_store_over(&self, table: &Table) -> Result<Store, Failure> {
        admin::store_over(&self.place, table.clone()).await
    }

    /// Returns whether the artifacts are to be checked.
    pub(super) fn checks_artifacts(&self) -> bool {
        self.check_artifacts
    }

    /// Returns whether nothing is to be written.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Opens the table, and creates it if it is missing in the embedded engine. The source has to
    /// be opened before, so that no table is created if the source cannot be read.
    pub(super) async fn open(&self, source: Source) -> Result<(ImportContext, Option<Engine>), Failure> {
        let secrets = SecretTransfer::open(self.secrets_key.as_deref(), self.dry_run)?;
        let (table, engine) = self.place.connect().await?;
        let mut total = 0;
        for table in COUNTED_TABLES {
            total += source.count(table).await?;
        }
        let is_used = self.place.create(&table, false).await?;
        let layout = layout::of(&table).await?;
        let table = table.in_background();
        if !is_used && !self.dry_run {
            let begun = table.transact(&[layout::row()]).await;
            begun.map_err(|failure| format!("cannot write to the table: {failure:?}"))?;
        }
        let context = ImportContext {
            source,
            writer: TableWriter::new(table.clone(), self.dry_run, self.write_units),
            table,
            segments: SegmentEncoding::of_layout(layout),
            archive: self.place.storage.archive()?,
            scope: self.scope()?,
            artifacts: self.artifacts.clone(),
            artifacts_destination: match &self.artifacts_destination {
                Some(destination) => destination.clone(),
                None => self.place.storage.artifacts()?.display().to_string(),
            },
            remap: self.remap,
            secrets,
            remapped: RemappedIds::default(),
            report: ImportReport::new(total)?,
        };
        Ok((context, engine))
    }

    fn scope(&self) -> Result<ImportScope, Failure> {
        Ok(match (&self.experiment, &self.workspace) {
            (Some(id), _) => ImportScope::Experiment(ExperimentId::parse(id).map_err(|error| error.message)?),
            (None, Some(name)) => ImportScope::Workspace(Workspace::parse(name).map_err(|error| error.message)?),
            (None, None) => ImportScope::All,
        })
    }
}

//! `mlflow-serverless serve`: all functions in a single process.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::AllowAll;
use artifact_store::Archive;
use axum::serve::ListenerExt;
use clap::{Args, ValueEnum};
use deliver::LocalDeliverer;
use domain::{Domain, Environment, EnvironmentSetting, UiFiles};
use domains::DOMAINS;
use embedded_engine::Engine;
use entities::workspaces::Workspaces;
use fts_indexer::Indexer;
use key_schema::access_rows;
use mlflow_api::auth::PermissionLevel;
use retention::{HistoryScans, Retention};
use table::{Query, Table};
use tokio::net::TcpListener;

use crate::artifact_options::{ArtifactOptions, ArtifactStorage};
use crate::feed::{LocalIndexer, StreamFeed, StreamPositions, TICK_INTERVAL};
use crate::metrics::RequestMetrics;
use crate::sign_on_options::SignOnOptions;
use crate::table_options::TableOptions;
use crate::webhook_options::WebhookOptions;
use crate::{Failure, connections, feed, housekeeping, say_address, shutdown_signal};

/// Maximum time for a bucket to join the parts of an upload. Some buckets take half a minute for 2
/// GB. Stock clients wait two minutes for the response.
const UPLOAD_COMPLETION_TIMEOUT: Duration = Duration::from_secs(45);

/// How long a shutdown waits for attempts in flight to deliver events to webhooks.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(3);

/// Options of `serve`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command")]
#[derive(Args)]
pub(crate) struct Options {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0 picks a free port.
    #[arg(long, default_value_t = 5000)]
    port: u16,
    #[command(flatten)]
    place: TableOptions,
    #[command(flatten)]
    artifacts: ArtifactOptions,
    /// Require clients of MLflow 3.18 and later, which support it, to transfer files only by
    /// presigned URLs.
    #[arg(long)]
    artifacts_presigned_only: bool,
    /// Maximum size of an artifact in bytes [default: no limit].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    max_artifact_size: Option<u64>,
    /// Directory of the MLflow UI, as fetched by `make ui` [default: the UI built into this
    /// program, or `ui/build` if none is built in].
    #[arg(long, value_name = "DIR", visible_alias = "ui-directory")]
    ui: Option<PathBuf>,
    /// Do not serve the UI.
    #[arg(long, conflicts_with = "ui")]
    no_ui: bool,
    /// Do not index, and do not clean up the embedded engine's stream, expired items and data past
    /// its retention, because another process does.
    #[arg(long)]
    no_indexer: bool,
    /// Index the table at the endpoint from its stream, for a table that is not indexed by a stack.
    /// Only one process may do this at a time.
    #[arg(long, requires = "dynamodb_endpoint", conflicts_with_all = ["data", "memory", "no_indexer"])]
    follow_stream: bool,
    /// For tests: minimum age of changes before they are indexed, in ms. They may be up to a second
    /// older.
    #[arg(long, value_name = "MS", default_value_t = 0, hide = true)]
    indexer_delay: u64,
    /// For tests: minimum interval between two indexings of a run that is being logged to, in ms.
    /// With 0, every change is indexed.
    #[arg(long, value_name = "MS", default_value_t = 60_000, hide = true)]
    run_indexing_interval: u64,
    /// Authentication mode: `none` gives everybody full access, `basic` requires a name and
    /// password [default: none, but only on loopback addresses].
    #[arg(long, value_name = "MODE")]
    auth: Option<AuthMode>,
    /// With `--auth basic`: permission level of users on resources without a grant.
    #[arg(long, value_name = "LEVEL", default_value = "NO_PERMISSIONS", value_parser = default_permission)]
    default_permission: PermissionLevel,
    /// With `--auth basic`: restrict the creation of experiments, registered models, prompts,
    /// MCP servers and skills to administrators and users with this role.
    #[arg(long, value_name = "ROLE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    creators: Option<String>,
    /// Enable workspaces: requests select one by the header X-MLFLOW-WORKSPACE. Requests without
    /// the header use the default workspace, which contains all earlier data.
    #[arg(long, visible_alias = "enable-workspaces")]
    workspaces: bool,
    /// Address of a proxy that terminates TLS. Its information about the origin of requests is
    /// trusted.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "plain_http")]
    trusted_proxy: Option<IpAddr>,
    /// With `--auth basic`: allow experiments to store artifacts where clients access them with
    /// credentials of their own, bypassing all grants.
    #[arg(long)]
    artifacts_past_users: bool,
    /// Serve other machines without TLS. Everybody on the network path can read passwords and data.
    #[arg(long)]
    plain_http: bool,
    /// Further host name under which clients or browsers reach this server, such as ml.example.com,
    /// ml.example.com:8443 or *.example.com. Requests for other host names are refused.
    #[arg(long, value_name = "NAME", visible_alias = "allowed-hosts", value_delimiter = ',')]
    allowed_host: Vec<local_guard::ServerName>,
    #[command(flatten)]
    webhooks: WebhookOptions,
    #[command(flatten)]
    sign_on: SignOnOptions,
    /// Create the table in DynamoDB if it does not exist, without the protections that the table of
    /// a stack has.
    #[arg(long, requires = "dynamodb_endpoint", conflicts_with_all = ["data", "memory"])]
    create_table: bool,
}

/// Authentication mode of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthMode {
    /// No authentication: everybody has full access.
    None,
    /// Name and password. Grants determine what a user may do.
    Basic,
}

fn default_permission(text: &str) -> Result<PermissionLevel, String> {
    let level = PermissionLevel::from_name(text).filter(|level| *level != PermissionLevel::Deny);
    level.ok_or_else(|| "expected READ, USE, EDIT, MANAGE or NO_PERMISSIONS".to_owned())
}

impl Options {
    /// Returns the authentication mode. On addresses other than loopback, the mode and the way in
    /// which connections are encrypted must be given explicitly.
    fn mode(&self) -> Result<AuthMode, Failure> {
        let is_loopback =
            self.host == "localhost" || self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        if is_loopback {
            return Ok(self.auth.unwrap_or(AuthMode::None));
        }
        let mode = self.auth.ok_or_else(|| {
            format!(
                "{} is reachable from other machines: choose --auth basic (names and passwords) or --auth none (everybody has full access)",
                self.host
            )
        })?;
        if self.trusted_proxy.is_none() && !self.plain_http {
            return Err(format!(
                "{} is reachable from other machines, and this server does not support TLS: give the address of a proxy that does with \
                 --trusted-proxy, or use --plain-http",
                self.host
            )
            .into());
        }
        Ok(mode)
    }
}

impl Options {
    /// Returns the indexer of a table, which may be in the embedded engine, without its deliverer of
    /// events.
    fn indexer(&self, table: &Table, embedded: Option<&Engine>, archive: Archive, layout: i64) -> Indexer {
        let source = embedded.map_or_else(|| table.clone(), |engine| feed::table_to_index(engine, table.name()));
        let indexer = Indexer::new(source)
            .with_layout(layout)
            .with_interval(Duration::from_millis(self.run_indexing_interval))
            .with_archive(archive);
        if self.workspaces { indexer.with_usage_counter() } else { indexer }
    }
}

/// Checks that clients store artifacts through the server, which checks grants.
fn check_artifacts_are_guarded(artifact_root: &str) -> Result<(), Failure> {
    if artifact_root.starts_with("mlflow-artifacts:") {
        return Ok(());
    }
    Err(format!(
        "clients access {artifact_root} with credentials of their own, regardless of grants: store artifacts in this server \
         (--artifacts-destination), or use --artifacts-past-users"
    )
    .into())
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mode = options.mode()?;
    let ArtifactStorage { directory, root: artifact_root, artifacts } =
        options.artifacts.open(&options.place.storage)?;
    if options.artifacts_presigned_only && !artifacts.has_urls() {
        return Err(
            "--artifacts-presigned-only requires artifacts in a bucket: a directory has no presigned URLs".into()
        );
    }
    let artifacts =
        artifacts.presigned_only(options.artifacts_presigned_only).completing_within(UPLOAD_COMPLETION_TIMEOUT);
    if mode == AuthMode::Basic && !options.artifacts_past_users {
        check_artifacts_are_guarded(&artifact_root)?;
    }
    // The artifact storage is opened at startup, so that configuration errors are reported now and
    // not at the first upload.
    let elsewhere = match artifacts.prefix() {
        Some(prefix) => Some(prefix.origin().await.map_err(|error| error.cause.unwrap_or(error.message))?),
        None => None,
    };
    let (table, engine) = options.place.connect().await?;
    let engine_is_here = engine.is_some();
    let embedded = engine.filter(|_| !options.no_indexer);
    let stream = if options.follow_stream { options.place.stream().await? } else { None };
    let is_new_table = !options.place.create(&table, options.create_table).await?;
    let access = options.place.access_table(&table);
    if mode == AuthMode::Basic || engine_is_here {
        options.place.create_access(&access, options.create_table).await?;
    }
    // Only the operator can decide when to migrate a remote table, because processes of an earlier
    // version may be using it.
    if engine_is_here {
        entities::migration::migrate(&table, &access).await?;
    }
    let layout = entities::layout::of(&table).await?;
    let retention = Retention::new(table.clone().in_background(), artifacts.clone());
    let retention = retention.with_layout(layout).looking(HistoryScans::AtNewOnes);
    let archive = Archive::new(artifacts.clone());
    let webhooks = options.webhooks.open(&table)?;
    let password_policy = options.sign_on.password_policy(mode == AuthMode::Basic)?;
    // Without users, everybody who can reach this address has full access.
    let around = Environment::new(Arc::new(AllowAll), table.clone()).with_artifacts(&artifact_root, artifacts.clone());
    let around = Environment {
        is_new_table,
        layout,
        max_artifact_bytes: options.max_artifact_size,
        working_directory: Some(directory),
        ui: (!options.no_ui).then_some(UiFiles { directory: ui_directory(options.ui.clone()), bucket: elsewhere }),
        secret_keys: webhooks.keys,
        outbound_policy: webhooks.policy,
        deliverer: Some(webhooks.deliverer.clone()),
        client_secrets: Arc::new(options.sign_on.client_secrets(&options.place.storage)),
        ..around
    };
    let around = match mode {
        AuthMode::None => around,
        AuthMode::Basic => around
            .with_users(table.clone(), access.clone(), options.default_permission)
            .with_creators(options.creators.clone())
            .with_password_policy(password_policy),
    };
    let around = if options.workspaces { around.with_workspaces() } else { around };
    if mode == AuthMode::Basic && !access_has_users(&access).await? {
        tracing::warn!("no user can sign in yet: create an administrator with `mlflow-serverless admin create NAME`");
    }
    let app = domain::mount(&domains_to_serve(&around), &[], &around).await?;
    let metrics = RequestMetrics::new();
    let app = service::join_routers(app, [metrics.router(table.clone(), Arc::clone(&around.authorizer))]);
    let allowed = local_guard::AllowedNames::new(&options.host, &options.allowed_host);
    let app = service::log_requests(local_guard::protect(app, allowed), move |line| {
        metrics.count(line);
        service::log(line);
    });
    let address = (options.host.as_str(), options.port);
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot listen on {}:{}: {error}", options.host, options.port))?;
    let url = format!("http://{}", listener.local_addr()?);
    // Responses are small and complete, so delaying packets to send more at once (Nagle's
    // algorithm) would only add latency.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "cannot disable Nagle's algorithm on a connection");
        }
    });
    let interval = Duration::from_millis(options.run_indexing_interval);
    let indexer = options.indexer(&table, embedded.as_ref(), archive, layout).with_webhooks(webhooks.deliverer.clone());
    let (housekeeping, feed) = if let Some(engine) = embedded {
        let housekeeping = tokio::spawn(housekeeping::run(
            engine.clone(),
            Some((retention, Workspaces::new(table.clone().in_background()))),
        ));
        let delay = Duration::from_millis(options.indexer_delay);
        // The feed of the embedded engine holds a lock, so this is the only indexer of the table.
        let indexer = LocalIndexer(indexer.as_only_indexer());
        (Some(housekeeping), Some(StreamFeed::start(engine, options.place.name, indexer, delay, tick_of(interval))))
    } else {
        let positions = StreamPositions(table.clone().in_background());
        (None, stream.map(|stream| feed::follow(stream, positions, LocalIndexer(indexer), tick_of(interval))))
    };
    say_address(&url);
    connections::serve(listener, app, options.trusted_proxy, shutdown_signal::wait_for_shutdown()).await;
    if let Some(housekeeping) = housekeeping {
        housekeeping.abort();
    }
    end_background_work(feed, &webhooks.deliverer).await;
    Ok(())
}

/// Stops the feed of the indexer and the deliveries to webhooks, both at the same time.
async fn end_background_work(feed: Option<StreamFeed>, deliverer: &LocalDeliverer) {
    let feed_stopped = async {
        if let Some(feed) = feed {
            feed.stop().await;
        }
    };
    tokio::join!(feed_stopped, deliverer.shut_down(DELIVERY_PATIENCE));
}

/// Returns the directory of the user interface, or `None` to serve the one built into this program.
fn ui_directory(chosen: Option<PathBuf>) -> Option<PathBuf> {
    chosen.or_else(|| (!ui::IS_EMBEDDED).then(|| PathBuf::from("ui/build")))
}

/// Returns whether any user exists who could sign in.
async fn access_has_users(access: &Table) -> Result<bool, Failure> {
    let users = Query::of(access_rows::ListedUser::all()).limit(1);
    let users = access.query_page(&users).await.map_err(|failure| format!("cannot read the users: {failure:?}"))?;
    Ok(!users.items.is_empty())
}

/// Returns the interval for checking postponed runs: a minute, or less if runs are due more often.
fn tick_of(interval: Duration) -> Duration {
    interval.clamp(Duration::from_millis(100), TICK_INTERVAL)
}

/// Returns the domains to serve: all of them, except that of the user interface if there are no
/// files for it.
fn domains_to_serve(around: &Environment) -> Vec<&'static Domain> {
    let has_files = |domain: &&Domain| {
        around.ui.is_some() || !domain.function.settings.contains(&EnvironmentSetting::ArtifactsOrigin)
    };
    DOMAINS.into_iter().filter(has_files).collect()
}

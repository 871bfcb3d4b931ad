//! `mlflow-serverless serve`: all functions in one process.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::AdmitEverybody;
use axum::serve::ListenerExt;
use clap::{Args, ValueEnum};
use domain::{Domain, Setting, Surroundings, UiFiles};
use domains::DOMAINS;
use fts_indexer::Indexer;
use key_schema::access_rows;
use mlflow_api::auth::Level;
use retention::{Looks, Retention};
use table::{Query, Table};
use tokio::net::TcpListener;
use workspaces::Workspaces;

use crate::artifact_options::{ArtifactOptions, Kept};
use crate::connect::Place;
use crate::feed::{Feed, InProcess, TICK};
use crate::metrics::Metrics;
use crate::{Failure, connections, feed, housekeeping, say_address, signals};

/// For how long a bucket may join the parts of an upload: some take half a minute for two gigabytes. Stock clients wait two minutes.
const COMPLETION: Duration = Duration::from_secs(45);

/// Options of `serve`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command")]
#[derive(Args)]
pub(crate) struct Options {
    /// Address to listen at.
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port to listen at; 0 takes any that is free.
    #[arg(long, default_value_t = 5000)]
    port: u16,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    artifacts: ArtifactOptions,
    /// Ask clients that know how to (MLflow 3.18 and later) to send and read files by presigned URLs only.
    #[arg(long)]
    artifacts_presigned_only: bool,
    /// Longest artifact that is taken, in bytes [default: no limit].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    max_artifact_size: Option<u64>,
    /// Directory with the MLflow UI, as `make ui` fetches it [default: the UI in this program, or
    /// `ui/build` if there is none].
    #[arg(long, value_name = "DIR", visible_alias = "ui-directory")]
    ui: Option<PathBuf>,
    /// Serve no UI.
    #[arg(long, conflicts_with = "ui")]
    no_ui: bool,
    /// Do not index, and leave the embedded engine's stream, expired items and expired data alone:
    /// another process looks after them.
    #[arg(long)]
    no_indexer: bool,
    /// Index the table at the endpoint, from its stream: for a table that no stack indexes. One
    /// process at a time may.
    #[arg(long, requires = "dynamodb_endpoint", conflicts_with_all = ["data", "memory", "no_indexer"])]
    follow_stream: bool,
    /// For tests: index changes only when they are so many ms old, or up to a second older.
    #[arg(long, value_name = "MS", default_value_t = 0, hide = true)]
    indexer_delay: u64,
    /// For tests: index a run that is being logged to at most once in so many ms, and with each change if it is 0.
    #[arg(long, value_name = "MS", default_value_t = 60_000, hide = true)]
    run_indexing_interval: u64,
    /// Authentication: with `none` everybody may do everything, `basic` asks for a name and a password [default: none, on loopback
    /// addresses only].
    #[arg(long, value_name = "MODE")]
    auth: Option<Mode>,
    /// With `--auth basic`: what users may do with resources without a grant.
    #[arg(long, value_name = "LEVEL", default_value = "NO_PERMISSIONS", value_parser = default_permission)]
    default_permission: Level,
    /// With `--auth basic`: only administrators and users with the role of this name create
    /// experiments, registered models and prompts.
    #[arg(long, value_name = "ROLE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    creators: Option<String>,
    /// Workspaces: requests name theirs in the header X-MLFLOW-WORKSPACE. Without it, they are
    /// about the default one, which has all earlier data.
    #[arg(long, visible_alias = "enable-workspaces")]
    workspaces: bool,
    /// The address of a proxy that speaks TLS with clients. It is trusted about where requests come
    /// from.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "plain_http")]
    trusted_proxy: Option<IpAddr>,
    /// With users: let experiments keep artifacts where clients write and read them with rights of
    /// their own, past all grants.
    #[arg(long)]
    artifacts_past_users: bool,
    /// Answer other machines without TLS: everybody between them and this one can read passwords
    /// and data.
    #[arg(long)]
    plain_http: bool,
    /// A further name under which clients or browsers reach this server, such as ml.example.com, ml.example.com:8443 or
    /// *.example.com; requests under other names are refused.
    #[arg(long, value_name = "NAME", visible_alias = "allowed-hosts", value_delimiter = ',')]
    allowed_host: Vec<local_guard::Name>,
    /// Make the table where DynamoDB has none of this name, without the protections of a stack's
    /// table.
    #[arg(long, requires = "dynamodb_endpoint", conflicts_with_all = ["data", "memory"])]
    create_table: bool,
}

/// How callers authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Not at all: everybody may do everything.
    None,
    /// With a name and a password. Grants decide what a user may do.
    Basic,
}

fn default_permission(text: &str) -> Result<Level, String> {
    let level = Level::from_name(text).filter(|level| *level != Level::Deny);
    level.ok_or_else(|| "it is READ, USE, EDIT, MANAGE or NO_PERMISSIONS".to_owned())
}

impl Options {
    /// The mode of authentication. Beyond loopback, it has to be named, and so has the way in which
    /// connections are encrypted.
    fn mode(&self) -> Result<Mode, Failure> {
        let is_loopback =
            self.host == "localhost" || self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        if is_loopback {
            return Ok(self.auth.unwrap_or(Mode::None));
        }
        let mode = self.auth.ok_or_else(|| {
            format!(
                "other machines can call {}: choose --auth basic (names and passwords) or --auth none (everybody may do everything)",
                self.host
            )
        })?;
        if self.trusted_proxy.is_none() && !self.plain_http {
            return Err(format!(
                "other machines can call {}, and this server speaks no TLS: name a proxy that does with --trusted-proxy, or say \
                 --plain-http",
                self.host
            )
            .into());
        }
        Ok(mode)
    }
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mode = options.mode()?;
    let Kept { directory, root: artifact_root, artifacts } = options.artifacts.open(&options.place.storage)?;
    if options.artifacts_presigned_only && !artifacts.has_urls() {
        return Err("--artifacts-presigned-only needs artifacts in a bucket: a directory has no presigned URLs".into());
    }
    let artifacts = artifacts.presigned_only(options.artifacts_presigned_only).completing_within(COMPLETION);
    let is_direct = !artifact_root.starts_with("mlflow-artifacts:");
    if mode == Mode::Basic && is_direct && !options.artifacts_past_users {
        return Err(format!(
            "clients write and read {artifact_root} with rights of their own, whatever users are granted: keep artifacts in this server \
             (--artifacts-destination), or say --artifacts-past-users"
        )
        .into());
    }
    // Found out now, and not when the first file is sent.
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
    if mode == Mode::Basic || engine_is_here {
        options.place.create_access(&access, options.create_table).await?;
    }
    // A table elsewhere may have processes of earlier versions, so its operator says when.
    if engine_is_here {
        entities::migration::migrate(&table, &access).await?;
    }
    let retention = Retention::new(table.clone().in_background(), artifacts.clone()).looking(Looks::AtNewOnes);
    // Without users, everybody who reaches this address may do everything.
    let around = Surroundings::new(Arc::new(AdmitEverybody), table.clone()).with_artifacts(&artifact_root, artifacts);
    let around = Surroundings {
        is_new_table,
        longest_artifact: options.max_artifact_size,
        directory: Some(directory),
        ui: (!options.no_ui).then_some(UiFiles { directory: ui_directory(options.ui), bucket: elsewhere }),
        ..around
    };
    let around = match mode {
        Mode::None => around,
        Mode::Basic => {
            around.with_users(table.clone(), access.clone(), options.default_permission).with_creators(options.creators)
        }
    };
    let around = if options.workspaces { around.with_workspaces() } else { around };
    if mode == Mode::Basic && !access_has_users(&access).await? {
        tracing::warn!("nobody can sign in yet: make an administrator with `mlflow-serverless admin create NAME`");
    }
    let app = domain::mount(&served(&around), &[], &around).await?;
    let metrics = Metrics::new();
    let app = service::joined(app, [metrics.router(table.clone(), Arc::clone(&around.authorizer))]);
    let allowed = local_guard::Allowed::new(&options.host, &options.allowed_host);
    let app = service::told(local_guard::guarded(app, allowed), move |line| {
        metrics.count(line);
        service::log(line);
    });
    let address = (options.host.as_str(), options.port);
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| format!("{}:{} cannot be listened at: {error}", options.host, options.port))?;
    let url = format!("http://{}", listener.local_addr()?);
    // Answers are small and complete: waiting for more to send would only delay them.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection stays slow");
        }
    });
    let interval = Duration::from_millis(options.run_indexing_interval);
    let indexer = Indexer::new(table.clone()).with_interval(interval);
    let indexer = if options.workspaces { indexer.counting() } else { indexer };
    let (housekeeping, feed) = if let Some(engine) = embedded {
        let housekeeping = tokio::spawn(housekeeping::run(
            engine.clone(),
            Some((retention, Workspaces::new(table.clone().in_background()))),
        ));
        let delay = Duration::from_millis(options.indexer_delay);
        // The feed has a lock.
        let indexer = InProcess(indexer.alone());
        (Some(housekeeping), Some(Feed::start(engine, options.place.name, indexer, delay, tick_of(interval))))
    } else {
        (None, stream.map(|stream| feed::follow(stream, InProcess(indexer), tick_of(interval))))
    };
    say_address(&url);
    connections::serve(listener, app, options.trusted_proxy, signals::wait_for_end()).await;
    if let Some(housekeeping) = housekeeping {
        housekeeping.abort();
    }
    if let Some(feed) = feed {
        feed.stop().await;
    }
    Ok(())
}

/// Where the user interface is; `None` is in this program.
fn ui_directory(chosen: Option<PathBuf>) -> Option<PathBuf> {
    chosen.or_else(|| (!ui::IS_EMBEDDED).then(|| PathBuf::from("ui/build")))
}

/// Whether anybody can sign in.
async fn access_has_users(access: &Table) -> Result<bool, Failure> {
    let users = Query::of(access_rows::ListedUser::all()).limit(1);
    let users = access.query_page(&users).await.map_err(|failure| format!("the users cannot be read: {failure:?}"))?;
    Ok(!users.items.is_empty())
}

/// How often to look at runs that were put off: every minute, and no less often than they are due.
fn tick_of(interval: Duration) -> Duration {
    interval.clamp(Duration::from_millis(100), TICK)
}

/// All domains; without files, not that of the user interface.
fn served(around: &Surroundings) -> Vec<&'static Domain> {
    let has_files =
        |domain: &&Domain| around.ui.is_some() || !domain.function.settings.contains(&Setting::ArtifactsOrigin);
    DOMAINS.into_iter().filter(has_files).collect()
}

//! The source in a request for a version, and the entities that it belongs to
//! (`_create_model_version`).

use access::Granted;
use entities::{ModelLocation, RunLocation, run_artifact_uri};
use mlflow_api::registry::{ModelStage, PROMPT_SOURCES};
use mlflow_api::{Error, ErrorCode, ModelId, RegisteredModelName, Result, location};

use super::Store;
use super::attributes::RUN;
use super::version_item::storage_of;
use crate::source_uri::{ModelUri, SourceUri};

/// A source as the client sent it.
#[derive(Clone, Debug, Default)]
pub struct VersionSource {
    /// The URI.
    pub uri: String,
    /// Id of the run that created the version. `None` if the request has no such field. An empty id
    /// explicitly names no run.
    pub run_id: Option<String>,
    /// Id of the logged model that the source is, or belongs to. `None` if the request has no such
    /// field. An empty id explicitly names no logged model.
    pub model_id: Option<String>,
}

/// The existing entities that a request names, and that its source may therefore belong to.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// The run.
    pub run: Option<Granted<RunLocation>>,
    /// The logged model.
    pub logged_model: Option<Granted<ModelLocation>>,
    /// The registered model, if the source is one of its versions.
    pub registered_model: Option<Granted<RegisteredModelName>>,
}

impl Owners {
    /// Returns the logged model of the request, which must have this id.
    pub(super) fn logged_model(&self, id: &str) -> Result<&Granted<ModelLocation>> {
        self.logged_model.as_ref().filter(|at| at.model.as_str() == id).ok_or_else(|| ModelId::not_found(id))
    }
}

impl VersionSource {
    /// Returns the registered model that the source is a version of, if it is one.
    #[must_use]
    pub fn registered_model(&self) -> Option<RegisteredModelName> {
        let source = SourceUri::parse(&self.uri);
        let uri = source.model_uri().filter(|_| source.has_scheme("models") && source.authority.is_empty())?;
        match uri {
            ModelUri::Version(name, _)
            | ModelUri::Latest(name)
            | ModelUri::Stage(name, _)
            | ModelUri::Alias(name, _) => Some(RegisteredModelName::named(name)),
            ModelUri::Logged(_) => None,
        }
    }
}

/// A source that has passed all checks.
#[derive(Clone, Debug, Default)]
pub(super) struct ResolvedSource {
    pub(super) uri: String,
    /// Location of the artifacts.
    pub(super) storage: String,
    pub(super) run_id: Option<String>,
    /// Id of the logged model that the version is created from. Never an empty text.
    pub(super) model_id: Option<String>,
}

impl Store {
    /// Checks a source and resolves the location of its artifacts. Takes no request if the source
    /// is not managed by this server and no logged model is named, and one or two otherwise.
    pub(super) async fn version_source(
        &self,
        asked: &VersionSource,
        owners: &Owners,
        is_prompt: bool,
    ) -> Result<ResolvedSource> {
        if is_prompt && !PROMPT_SOURCES.contains(&asked.uri.as_str()) {
            return Err(Error::invalid(format!(
                "Invalid prompt source: '{}'. Prompt sources must use an MLflow placeholder.",
                asked.uri
            )));
        }
        SourceUri::parse(&asked.uri).check_length()?;
        location::check_host(&asked.uri, &self.artifact_root, "source")?;
        let model_id = asked.model_id.clone().filter(|id| !id.is_empty());
        let mut resolved = ResolvedSource {
            uri: asked.uri.clone(),
            storage: asked.uri.clone(),
            run_id: Some(asked.run_id.clone().unwrap_or_default()),
            model_id,
        };
        if is_prompt {
            return Ok(resolved);
        }
        let source = SourceUri::parse(&asked.uri);
        if source.has_scheme("models") {
            if !source.authority.is_empty() {
                return Err(source.source_error("Registered model sources must use the active model registry."));
            }
            match source.model_uri().ok_or_else(|| source.owner_error("model_id"))? {
                ModelUri::Logged(id) => {
                    resolved.storage = self.source_logged(&source, id, owners, &mut resolved).await?;
                }
                registered => return self.source_registered(&source, registered, asked, owners).await,
            }
        } else if resolved.model_id.is_some() {
            self.source_of_model(&source, owners, &mut resolved).await?;
        } else {
            self.source_of_run(&source, owners, &resolved).await?;
        }
        Ok(resolved)
    }

    /// Checks a source that is a logged model, which the request has to name as well. Returns the
    /// location of the logged model's artifacts.
    async fn source_logged(
        &self,
        source: &SourceUri<'_>,
        id: &str,
        owners: &Owners,
        resolved: &mut ResolvedSource,
    ) -> Result<String> {
        source.check_plain()?;
        if resolved.model_id.as_deref() != Some(id) {
            return Err(source.owner_error("model_id"));
        }
        let model =
            self.logged_model(owners.logged_model(id).ok()).await?.ok_or_else(|| source.owner_error("model_id"))?;
        take_run(resolved, model.source_run);
        Ok(model.artifact_location)
    }

    /// Checks a source that has to belong to a logged model.
    async fn source_of_model(
        &self,
        source: &SourceUri<'_>,
        owners: &Owners,
        resolved: &mut ResolvedSource,
    ) -> Result<()> {
        let id = resolved.model_id.clone().unwrap_or_default();
        if !source.is_local() {
            source.check_plain()?;
        }
        if source.has_scheme("runs") {
            return Err(source.owner_error("model_id"));
        }
        let model = self.logged_model(owners.logged_model(&id).ok()).await?.ok_or_else(|| {
            let has_owner = source.is_local() || source.is_proxied();
            if has_owner { source.owner_error("model_id") } else { ModelId::not_found(&id) }
        })?;
        let is_its_own = source.is_below(&model.artifact_location);
        if source.is_local() && !is_its_own {
            return Err(SourceUri::local_path_error(&source.local_path(), "model_id"));
        }
        if self.is_sent_by_server(source) && !is_its_own {
            return Err(source.owner_error("model_id"));
        }
        take_run(resolved, model.source_run);
        Ok(())
    }

    /// Checks a source without a logged model. If it is managed by this server, it must belong to
    /// its run.
    async fn source_of_run(&self, source: &SourceUri<'_>, owners: &Owners, resolved: &ResolvedSource) -> Result<()> {
        let run = resolved.run_id.as_deref().filter(|run| !run.is_empty());
        if source.is_local() {
            if run.is_none() {
                return Err(SourceUri::local_path_error(source.uri, "run_id"));
            }
            let artifacts = self.run_artifacts(source, owners).await?;
            let refused = || SourceUri::local_path_error(&source.local_path(), "run_id");
            return if source.is_below(&artifacts) { Ok(()) } else { Err(refused()) };
        }
        source.check_plain()?;
        if source.has_scheme("runs") {
            let is_its_own = source.authority.is_empty() && run.is_some() && source.run() == run;
            return if is_its_own { Ok(()) } else { Err(source.owner_error("run_id")) };
        }
        if !self.is_sent_by_server(source) {
            return Ok(());
        }
        if run.is_none() {
            // A source in the bucket may be recorded without an owner, because
            // `StoredVersion::artifacts` sends no files of versions that name neither a run nor a
            // logged model.
            return if source.is_proxied() { Err(source.owner_error("run_id")) } else { Ok(()) };
        }
        let artifacts = self.run_artifacts(source, owners).await?;
        if source.is_below(&artifacts) { Ok(()) } else { Err(source.owner_error("run_id")) }
    }

    /// Resolves a source that is a version of a registered model. The new version gets that
    /// version's artifact location, and its run unless the request names a run.
    async fn source_registered(
        &self,
        source: &SourceUri<'_>,
        uri: ModelUri<'_>,
        asked: &VersionSource,
        owners: &Owners,
    ) -> Result<ResolvedSource> {
        let (ModelUri::Version(name, _)
        | ModelUri::Latest(name)
        | ModelUri::Stage(name, _)
        | ModelUri::Alias(name, _)
        | ModelUri::Logged(name)) = uri;
        let registered = owners.registered_model.as_ref().filter(|registered| registered.as_str() == name);
        let registered = registered.ok_or_else(|| Error::internal("a source was not resolved"))?;
        let model = self.model_find(name).await?;
        if model.is_prompt() {
            return Err(source.source_error("Prompt versions cannot be used as model version sources."));
        }
        let version = match uri {
            ModelUri::Version(_, number) => number.to_owned(),
            ModelUri::Alias(_, alias) => self.alias_get(registered, alias).await?.version,
            ModelUri::Latest(_) | ModelUri::Logged(_) => latest(name, None, model.latest().into_values().max())?,
            ModelUri::Stage(_, stage) => {
                latest(name, Some(stage), model.latest().get(&ModelStage::parse(stage)?).copied())?
            }
        };
        let found = self.version_find(name, &mlflow_api::limits_registry::version(&version)?).await?;
        let run_of_source = found.item.get(RUN);
        let differs = |sent: &Option<String>, own: Option<&str>| {
            sent.as_deref().is_some_and(|sent| sent != own.unwrap_or_default())
        };
        if differs(&asked.run_id, run_of_source) || differs(&asked.model_id, None) {
            let reason = "The run_id and model_id request parameters must match the referenced model version.";
            return Err(source.source_error(reason));
        }
        let resolved = ResolvedSource {
            uri: format!("models:/{name}/{}", found.number),
            storage: storage_of(&found.item).to_owned(),
            run_id: asked.run_id.clone().or_else(|| run_of_source.map(str::to_owned)),
            model_id: None,
        };
        SourceUri::parse(&resolved.uri).check_plain()?;
        Ok(resolved)
    }

    /// Checks whether this server sends the files of a source to callers who may read the version.
    /// If so, the files have to belong to an entity that the version names.
    fn is_sent_by_server(&self, source: &SourceUri<'_>) -> bool {
        source.is_proxied() || self.artifacts.keeps_object(source.uri)
    }

    /// Returns the location of a run's artifacts. Takes one request and two read units.
    async fn run_artifacts(&self, source: &SourceUri<'_>, owners: &Owners) -> Result<String> {
        let at = owners.run.as_ref().ok_or_else(|| source.owner_error("run_id"))?;
        run_artifact_uri(&self.table, at).await?.ok_or_else(|| source.owner_error("run_id"))
    }
}

/// Sets the run of a version that names none to the run of its logged model. As in MLflow, the
/// caller's permission to read the run is not checked here: it was checked when the logged model
/// was created, and nothing is written to the run's partition.
fn take_run(resolved: &mut ResolvedSource, run: Option<String>) {
    if resolved.run_id.as_deref().unwrap_or_default().is_empty() && run.is_some() {
        resolved.run_id = run;
    }
}

fn latest(name: &str, stage: Option<&str>, version: Option<u32>) -> Result<String> {
    version.map(|version| version.to_string()).ok_or_else(|| {
        let stage = stage.map(|stage| format!(" and stage '{stage}'")).unwrap_or_default();
        // As in MLflow, the error has no specific code.
        Error::new(ErrorCode::InternalError, format!("No versions of model with name '{name}'{stage} found"))
    })
}

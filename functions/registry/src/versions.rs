//! Endpoints of `model-versions/…`.

use access::{Action, Needs, Resource, Scope, Target};
use artifact_access::VersionDirectory;
use artifact_access::send_file_or_url;
use artifact_store::ArtifactPath;
use mlflow_api::key_value::pairs;
use mlflow_api::registry::{DownloadUriResponse, IS_PROMPT_TAG, ModelVersionResponse, SearchVersionsResponse};
use mlflow_api::requests::registry as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{ModelId, RegisteredModelName, Request, Result, RunId};
use search::{VersionFilter, parse_version_search};
use service::{Endpoint, EndpointResponse};

use crate::response_visibility;
use crate::store::{NewVersion, Owners, RegistrySearch as Asked, Store, VersionSource};

/// Page size for requests without `max_results` (`SearchModelVersions` in `model_registry.proto`).
const DEFAULT_PAGE_SIZE: i64 = 200_000;

/// Returns the permissions that an action on a version of a model requires.
fn version_needs(action: Action, model: &RegisteredModelName) -> Needs {
    Needs::of_in(action, Resource::ModelVersion, Target::RegisteredModel(model.clone()))
}

pub(crate) struct Create {
    name: RegisteredModelName,
    new: NewVersion,
}

impl Create {
    /// Returns the run that the request names, if the id is valid.
    fn run(&self) -> Option<RunId> {
        self.new.source.run_id.as_deref().and_then(RunId::parse)
    }

    /// Returns the logged model that the request names, if the id is valid.
    fn logged_model(&self) -> Option<ModelId> {
        self.new.source.model_id.as_deref().and_then(ModelId::parse)
    }
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = ModelVersionResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateVersion = request.read()?;
        let tags = pairs(message.tags);
        // If the tag is repeated, its last value is used.
        let is_prompt = tags.iter().rev().find(|(key, _)| key == IS_PROMPT_TAG).map(|(_, value)| value.to_lowercase());
        let new = NewVersion {
            source: VersionSource { uri: message.source, run_id: message.run_id, model_id: message.model_id },
            is_prompt: is_prompt.as_deref() == Some("true"),
            tags,
            run_link: message.run_link,
            description: message.description,
        };
        Ok(Self { name: message.name, new })
    }

    /// The permissions cover the model, the run, the logged model (whose tag lists its versions),
    /// and the version that is the source. The latter is needed because callers who may read the
    /// new version may read the files of its source. An invalid id is treated as the id of an
    /// entity that does not exist. If the request declares the version to be a version of a prompt,
    /// the permissions for prompts are required as well, regardless of the model.
    fn needs(&self) -> Needs {
        let VersionSource { run_id, model_id, .. } = &self.new.source;
        let model = Target::RegisteredModel(self.name.clone());
        let run = run_id.as_ref().map(|_| self.run().map_or(Target::Nothing(Resource::Run), Target::Run));
        let logged = self.logged_model().map_or(Target::Nothing(Resource::LoggedModel), Target::LoggedModel);
        let source = self.new.source.registered_model().map(Target::RegisteredModel);
        let needs = Needs::create_in(model.clone(), Resource::ModelVersion)
            .and(Action::Read, run)
            .and(Action::Read, model_id.as_ref().map(|_| logged))
            .and_in(Action::Read, Resource::ModelVersion, source)
            .showing([Resource::Run]);
        if self.new.is_prompt { needs.and_in(Action::Create, Resource::PromptVersion, [model]) } else { needs }
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ModelVersionResponse> {
        let run = self.run().map(|run| scope.known_run(&run)).transpose()?.flatten();
        let logged_model = self.logged_model().map(|model| scope.known_logged_model(&model)).transpose()?.flatten();
        let registered = self.new.source.registered_model();
        let registered_model = registered.map(|name| scope.registered_model(&name)).transpose()?;
        let owners = Owners { run, logged_model, registered_model };
        let name = scope.registered_model(&self.name)?;
        Ok(response_visibility::visible_version(
            scope,
            store.version_create(scope.workspace(), &name, &self.new, &owners).await?,
        ))
    }
}

pub(crate) struct Get(message::OneVersion);

impl Endpoint for Get {
    type Store = Store;
    type Answer = ModelVersionResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        version_needs(Action::Read, &self.0.name).showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ModelVersionResponse> {
        Ok(response_visibility::visible_version(
            scope,
            store.version_get(&scope.registered_model(&self.0.name)?, &self.0.version).await?,
        ))
    }
}

pub(crate) struct GetDownloadUri(message::GetDownloadUri);

impl Endpoint for GetDownloadUri {
    type Store = Store;
    type Answer = DownloadUriResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        version_needs(Action::Read, &self.0.name)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DownloadUriResponse> {
        let version = store.version_stored(&scope.registered_model(&self.0.name)?, &self.0.version).await?;
        // The response contains the location of the files, which is all that clients need to read
        // them. If the caller may not read the run or the logged model at that location, the
        // response contains the version's own directory instead. Permission to read the version is
        // enough for reading that directory.
        let artifact_uri = match version.needs_of_storage(store.artifacts()) {
            Some(needs) if !scope.is_allowed(service::DomainStore::table(store), &needs).await? => {
                VersionDirectory { name: self.0.name, version: version.number }.uri()
            }
            _ => version.storage().to_owned(),
        };
        Ok(DownloadUriResponse { artifact_uri })
    }
}

/// A request for a file of a version whose artifacts are managed by this server. As in MLflow, the
/// arguments are read from the query string instead of a message.
pub(crate) struct GetArtifact {
    name: RegisteredModelName,
    version: String,
    path: ArtifactPath,
    /// Whether the client prefers to download the file itself through a presigned URL. MLflow
    /// clients from version 3.18 request this.
    presigned: bool,
}

impl Endpoint for GetArtifact {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let path = artifact_access::path_argument(request)?;
        let [name, version] = ["name", "version"].map(|argument| request.argument(argument).unwrap_or_default());
        let presigned = request.argument("presigned") == Some("true");
        Ok(Self { name: RegisteredModelName::named(name), version: version.to_owned(), path, presigned })
    }

    fn needs(&self) -> Needs {
        version_needs(Action::Read, &self.name)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        let version = store.version_stored(&scope.registered_model(&self.name)?, &self.version).await?;
        let artifacts = version.artifacts(service::DomainStore::table(store), store.artifacts()).await?;
        send_file_or_url(&artifacts, &self.path, self.presigned).await
    }
}

pub(crate) struct Search(Asked);

impl Endpoint for Search {
    type Store = Store;
    type Answer = SearchVersionsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message::SearchVersions { filter, max_results, order_by, page_token } = request.read()?;
        Ok(Self(Asked {
            filter,
            order_by,
            max_results: max_results.unwrap_or(DEFAULT_PAGE_SIZE),
            page_token,
            hides_runs: false,
        }))
    }

    /// If the filter refers to runs, permission to read all runs is required, because the result
    /// would otherwise reveal which versions the runs have. This includes filters on sources, which
    /// contain ids of runs, and filters that cannot be parsed, which the store rejects later.
    fn needs(&self) -> Needs {
        let versions = Needs::list(Resource::ModelVersion).showing([Resource::Run]);
        let names_runs = |filter: &VersionFilter| !filter.runs.is_empty() || !filter.sources.is_empty();
        let by_runs = parse_version_search(&self.0.filter, &[]).map_or(true, |(filter, _)| names_runs(&filter));
        versions.and(Action::Read, by_runs.then_some(Target::Any(Resource::Run)))
    }

    async fn act(mut self, scope: &Scope, store: &Store) -> Result<SearchVersionsResponse> {
        self.0.hides_runs = !scope.shows(Resource::Run);
        store.version_search(scope.workspace(), scope.visibility(), &self.0).await
    }
}

pub(crate) struct Update(message::UpdateVersion);

impl Endpoint for Update {
    type Store = Store;
    type Answer = ModelVersionResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        version_needs(Action::Update, &self.0.name).showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ModelVersionResponse> {
        let message::UpdateVersion { name, version, description } = &self.0;
        let name = scope.registered_model(name)?;
        Ok(response_visibility::visible_version(
            scope,
            store.version_update(&name, version, description.as_deref()).await?,
        ))
    }
}

pub(crate) struct TransitionStage(message::TransitionStage);

impl Endpoint for TransitionStage {
    type Store = Store;
    type Answer = ModelVersionResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        version_needs(Action::Update, &self.0.name).showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ModelVersionResponse> {
        let message::TransitionStage { name, version, stage, archive_existing_versions: archive } = &self.0;
        let name = scope.registered_model(name)?;
        Ok(response_visibility::visible_version(
            scope,
            store.version_transition(scope.workspace(), &name, version, stage, *archive).await?,
        ))
    }
}

pub(crate) struct Delete(message::OneVersion);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        version_needs(Action::Delete, &self.0.name)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let name = scope.registered_model(&self.0.name)?;
        store.version_delete(scope.workspace(), &name, &self.0.version).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct SetTag(message::SetVersionTag);

impl Endpoint for SetTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        version_needs(Action::Update, &self.0.name)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let message::SetVersionTag { name, version, key, value } = &self.0;
        store.version_set_tag(&scope.registered_model(name)?, version, key, value).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag(message::DeleteVersionTag);

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    /// As in MLflow, deleting a tag requires permission to delete the version.
    fn needs(&self) -> Needs {
        version_needs(Action::Delete, &self.0.name)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let message::DeleteVersionTag { name, version, key } = &self.0;
        store.version_delete_tag(&scope.registered_model(name)?, version, key).await?;
        Ok(EmptyResponse {})
    }
}

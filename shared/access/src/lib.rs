//! What a caller needs to be allowed, route by route.
//!
//! Every row of a function's route table carries a [`Permission`]; there is no default. Who is calling is settled before a
//! request gets here: in AWS by the API Gateway's IAM authorizer, on a laptop by listening on the loopback address only.
//! Permissions per user are not kept yet, so whoever gets past that may do everything.

/// What a route does, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Open to everybody, without a word about anybody's data: health, version, what the server can do.
    Public,
    /// Create an entity of this kind.
    Create(Resource),
    /// List entities of this kind; the answer holds those the caller may read.
    List(Resource),
    /// Read the entity the request names.
    Read(Resource),
    /// Change it.
    Update(Resource),
    /// Delete or restore it.
    Delete(Resource),
}

/// What permissions are granted for. Runs and logged models are guarded by their experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// An experiment, named by its id or its name.
    Experiment,
    /// The experiment of the run that the request names.
    ExperimentOfRun,
    /// A registered model or a prompt, named by its name; its versions are guarded by it.
    RegisteredModel,
    /// The experiment of the logged model that the request names.
    ExperimentOfModel,
    /// An evaluation dataset, named by its id. It belongs to no experiment, but may be listed by several.
    EvaluationDataset,
    /// A scorer, named by its experiment and its name, or by its id.
    Scorer,
}

//! Single reads: one request per entity, which succeeds if the caller may read the entity.

use super::entity::{Entity, Kind};
use super::test_servers::{Asked, Ids, WORKSPACES};

/// Returns a single read of every entity in a workspace.
pub(super) fn singles(workspace: &str, ids: &Ids) -> Vec<(Entity, Asked)> {
    let v2 = |path: String| Asked::get(format!("/api/2.0/mlflow/{path}"));
    let v3 = |path: String| Asked::get(format!("/api/3.0/mlflow/{path}"));
    let mut all = Vec::new();
    let mut add = |kind: Kind, id: String, asked: Asked| all.push(((kind, id), asked));
    let of = |name: &str| ids[name].clone();
    for name in ["e1", "e2", "gone"] {
        add(Kind::Experiment, of(name), v2(format!("experiments/get?experiment_id={}", ids[name])));
    }
    if workspace == "default" {
        add(Kind::Experiment, "0".to_owned(), v2("experiments/get?experiment_id=0".to_owned()));
    }
    for name in ["r1", "r2", "dead1", "dead2"] {
        add(Kind::Run, of(name), v2(format!("runs/get?run_id={}", ids[name])));
    }
    for number in ["1", "2"] {
        let [experiment, logged, trace, assessment] =
            ["e", "l", "t", "a"].map(|kind| ids[&format!("{kind}{number}")].clone());
        add(Kind::LoggedModel, logged.clone(), v2(format!("logged-models/{logged}")));
        add(Kind::Trace, trace.clone(), v3(format!("traces/{trace}")));
        let path = format!("traces/{trace}/assessments/{assessment}");
        add(Kind::Assessment, assessment, v3(path));
        let scorer = format!("scorers/get?experiment_id={experiment}&name=s");
        add(Kind::Scorer, format!("{experiment}/s"), v3(scorer.clone()));
        for version in ["1", "2"] {
            let id = format!("{experiment}/s/{version}");
            add(Kind::ScorerVersion, id, v3(format!("{scorer}&version={version}")));
        }
        for kind in ["m", "p"] {
            let name = format!("{kind}{number}");
            add(Kind::Model, name.clone(), v2(format!("registered-models/get?name={name}")));
            let version = format!("model-versions/get?name={name}&version=1");
            add(Kind::Version, format!("{name}/1"), v2(version));
        }
    }
    for name in ["d1", "d2", "both", "none", "ghost", "odd"] {
        add(Kind::Dataset, of(name), v3(format!("datasets/{}", ids[name])));
    }
    for server in ["s1", "s2"].map(|slug| format!("com.example/{slug}")) {
        add(Kind::McpServer, server.clone(), v3(format!("mcp-servers/{server}")));
        for version in ["1.0.0", "2.0.0"] {
            add(
                Kind::McpVersion,
                format!("{server}/{version}"),
                v3(format!("mcp-servers/{server}/versions/{version}")),
            );
        }
    }
    for (organization, skill) in [("acme", "@acme/k1"), ("", "k2")] {
        let name = skill.rsplit('/').next().unwrap();
        add(Kind::Skill, format!("{organization}/{name}"), v3(format!("skills/{skill}")));
        for version in [1, 2] {
            let id = format!("{organization}/{name}/{version}");
            add(Kind::SkillVersion, id, v3(format!("skills/{skill}/versions/{version}")));
        }
    }
    add(Kind::Role, of("role"), v3(format!("roles/get?role_id={}", ids["role"])));
    all
}

/// Returns a single read of every workspace.
pub(super) fn workspaces() -> Vec<(Entity, Asked)> {
    let one =
        |name: &str| ((Kind::Workspace, name.to_owned()), Asked::get(format!("/api/3.0/mlflow/workspaces/{name}")));
    WORKSPACES.into_iter().map(one).collect()
}

//! The route table: method, path, permission, handler.

use access::Permission;
use access::Permission::{Create, Delete, List, Manage, Read, Update};
use access::Resource::{Skill, SkillVersion};
use service::{Endpoint, Paths, Route};

use crate::store::Store;
use crate::{aliases, registrations, skills, versions};

/// Returns the routes of this function. Each route of a single skill exists twice, because its path
/// contains one more part if the skill belongs to an organization.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    let mut routes = vec![
        Route::to::<skills::Create>("POST", "skills", Create(Skill)).under(Paths::V3),
        Route::to::<skills::Search>("GET", "skills", List(Skill)).under(Paths::V3),
        Route::to::<registrations::Bulk>("POST", "skills/bulk-register", Create(SkillVersion)).under(Paths::V3),
    ];
    let named = [
        of::<skills::Get>("GET", ["skills/{name}", "skills/@{organization}/{name}"], Read(Skill)),
        of::<skills::Update>("PATCH", ["skills/{name}", "skills/@{organization}/{name}"], Update(Skill)),
        of::<skills::Delete>("DELETE", ["skills/{name}", "skills/@{organization}/{name}"], Delete(Skill)),
        of::<skills::SetTag>("POST", ["skills/{name}/tags", "skills/@{organization}/{name}/tags"], Update(Skill)),
        of::<skills::DeleteTag>(
            "DELETE",
            ["skills/{name}/tags/{*key}", "skills/@{organization}/{name}/tags/{*key}"],
            Update(Skill),
        ),
        of::<aliases::Set>("POST", ["skills/{name}/aliases", "skills/@{organization}/{name}/aliases"], Update(Skill)),
        of::<aliases::Get>(
            "GET",
            ["skills/{name}/aliases/{alias}", "skills/@{organization}/{name}/aliases/{alias}"],
            Read(SkillVersion),
        ),
        of::<aliases::Delete>(
            "DELETE",
            ["skills/{name}/aliases/{alias}", "skills/@{organization}/{name}/aliases/{alias}"],
            Manage(Skill),
        ),
        of::<registrations::Create>(
            "POST",
            ["skills/{name}/versions", "skills/@{organization}/{name}/versions"],
            Create(SkillVersion),
        ),
        of::<versions::Search>(
            "GET",
            ["skills/{name}/versions", "skills/@{organization}/{name}/versions"],
            Read(SkillVersion),
        ),
        of::<versions::Get>(
            "GET",
            ["skills/{name}/versions/{version}", "skills/@{organization}/{name}/versions/{version}"],
            Read(SkillVersion),
        ),
        of::<versions::Update>(
            "PATCH",
            ["skills/{name}/versions/{version}", "skills/@{organization}/{name}/versions/{version}"],
            Update(SkillVersion),
        ),
        of::<versions::Delete>(
            "DELETE",
            ["skills/{name}/versions/{version}", "skills/@{organization}/{name}/versions/{version}"],
            Delete(SkillVersion),
        ),
        of::<versions::SetTag>(
            "POST",
            ["skills/{name}/versions/{version}/tags", "skills/@{organization}/{name}/versions/{version}/tags"],
            Update(SkillVersion),
        ),
        of::<versions::DeleteTag>(
            "DELETE",
            [
                "skills/{name}/versions/{version}/tags/{*key}",
                "skills/@{organization}/{name}/versions/{version}/tags/{*key}",
            ],
            Delete(SkillVersion),
        ),
    ];
    routes.extend(named.into_iter().flatten());
    routes
}

fn of<E: Endpoint<Store = Store>>(
    method: &'static str,
    paths: [&'static str; 2],
    permission: Permission,
) -> [Route<Store>; 2] {
    // A skill may be called `bulk-register`, which is also the path of bulk registrations.
    paths.map(|path| Route::to::<E>(method, path, permission).under(Paths::V3).with_word_in("name", "bulk-register"))
}

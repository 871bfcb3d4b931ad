//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List as ListOf, Manage, Read, Share, SignedIn, Update};
use access::Resource::{Role, User, Workspace};
use service::{Paths, Route};

use crate::store::{Store, WorkspaceStore};
use crate::{grants, renewal_endpoint, roles, signin_page, signup_page, token_page, users, workspaces};

/// Returns the routes of workspaces. They exist even if users do not sign in.
#[must_use]
pub fn workspace_routes() -> Vec<Route<WorkspaceStore>> {
    vec![
        Route::to::<workspaces::List>("GET", "workspaces", ListOf(Workspace)).under(Paths::V3),
        Route::to::<workspaces::Create>("POST", "workspaces", Create(Workspace)).under(Paths::V3),
        Route::to::<workspaces::Get>("GET", "workspaces/{workspace_name}", Read(Workspace)).under(Paths::V3),
        Route::to::<workspaces::Update>("PATCH", "workspaces/{workspace_name}", Update(Workspace)).under(Paths::V3),
        Route::to::<workspaces::Delete>("DELETE", "workspaces/{workspace_name}", Delete(Workspace)).under(Paths::V3),
    ]
}

/// Returns the routes of users, roles and grants.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::to::<users::Create>("POST", "users/create", Create(User)),
        Route::to::<signup_page::Submit>("POST", "/api/2.0/mlflow/users/create-ui", Create(User)).under(Paths::Bare),
        Route::to::<signup_page::Show>("GET", "/signup", Create(User)).under(Paths::Bare),
        Route::open("GET", "/signin", signin_page::show),
        Route::open("POST", "/signin", signin_page::submit),
        Route::open("POST", "/ajax-api/2.0/mlflow/users/renew-session", renewal_endpoint::renew_session),
        Route::to::<token_page::Show>("GET", "/tokens", SignedIn).under(Paths::Bare),
        Route::to::<token_page::Submit>("POST", "/tokens", SignedIn).under(Paths::Bare),
        //
        Route::to::<users::Current>("GET", "users/current", SignedIn),
        Route::to::<users::Get>("GET", "users/get", Read(User)),
        Route::to::<users::List>("GET", "users/list", Read(User)),
        Route::to::<users::UpdatePassword>("PATCH", "users/update-password", Update(User)),
        Route::to::<users::UpdateAdmin>("PATCH", "users/update-admin", Manage(User)),
        Route::to::<users::Delete>("DELETE", "users/delete", Delete(User)),
        //
        Route::to::<grants::Current>("GET", "users/current/permissions", SignedIn).under(Paths::V3),
        Route::to::<grants::List>("GET", "users/permissions/list", Read(User)).under(Paths::V3),
        Route::to::<grants::Get>("GET", "users/permissions/get", Read(User)).under(Paths::V3),
        Route::to::<grants::Grant>("POST", "users/permissions/grant", Share).under(Paths::V3),
        Route::to::<grants::Revoke>("POST", "users/permissions/revoke", Share).under(Paths::V3),
        Route::to::<roles::ListOfUser>("GET", "users/roles/list", Read(User)).under(Paths::V3),
        //
        Route::to::<roles::Create>("POST", "roles/create", Manage(Role)).under(Paths::V3),
        Route::to::<roles::Get>("GET", "roles/get", Read(Role)).under(Paths::V3),
        Route::to::<roles::List>("GET", "roles/list", Read(Role)).under(Paths::V3),
        Route::to::<roles::Change>("PATCH", "roles/update", Manage(Role)).under(Paths::V3),
        Route::to::<roles::Delete>("DELETE", "roles/delete", Manage(Role)).under(Paths::V3),
        Route::to::<roles::AddPermission>("POST", "roles/permissions/add", Manage(Role)).under(Paths::V3),
        Route::to::<roles::RemovePermission>("DELETE", "roles/permissions/remove", Manage(Role)).under(Paths::V3),
        Route::to::<roles::ListPermissions>("GET", "roles/permissions/list", Read(Role)).under(Paths::V3),
        Route::to::<roles::ChangePermission>("PATCH", "roles/permissions/update", Manage(Role)).under(Paths::V3),
        Route::to::<roles::Assign>("POST", "roles/assign", Manage(Role)).under(Paths::V3),
        Route::to::<roles::Unassign>("DELETE", "roles/unassign", Manage(Role)).under(Paths::V3),
        Route::to::<roles::ListUsers>("GET", "roles/users/list", Manage(Role)).under(Paths::V3),
    ]
}

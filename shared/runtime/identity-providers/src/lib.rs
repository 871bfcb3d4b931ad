//! Single sign-on, without I/O to the table: the configuration of identity providers, and what is
//! read from the tokens that they issue.

mod configuration;
mod memberships;
mod person;

pub use configuration::{
    AuthorizeParameters, ClaimRule, Configuration, MachineRule, NewUsers, Provider, RoleRule, RoleTarget,
};
pub use memberships::{Memberships, NamedRole};
pub use person::Person;

//! Bodies of all requests except for those that register versions.

use super::SkillStatus;
use super::limits::{check_alias, check_tag};
use crate::json::JsonObject;
use crate::mcp_servers::icons::icons;
use crate::mcp_servers::validation::{Validation, body, integer as whole_number, invalid_request, within};
use crate::{Error, Json, Request, Result, SkillName, python};

/// Greatest number of a version (`MAX_SKILL_VERSION`).
const MAX_VERSION: u32 = 2_147_483_647;

/// Records a mistake for each field of a body that is not one of these `fields`.
pub(super) fn forbid_others(validation: &mut Validation, at: &str, body: &JsonObject, fields: &[&str]) {
    for (key, _) in body.iter().filter(|(key, _)| !fields.contains(key)) {
        validation.fail(&within(at, key), "Extra inputs are not permitted");
    }
}

/// Checks a text that may be missing, but not null. Returns the default if it is missing.
pub(super) fn text_or(validation: &mut Validation, at: &str, body: &JsonObject, key: &str, default: &str) -> String {
    match body.get(key) {
        None => default.to_owned(),
        Some(_) => validation.required_text(at, body, key).unwrap_or_default(),
    }
}

/// A new skill (`CreateSkillRequest`).
#[derive(Clone, Debug)]
pub struct NewSkill {
    /// Name.
    pub name: SkillName,
    /// Description.
    pub description: Option<String>,
    /// Icons, as a list.
    pub icons: Option<Json>,
}

impl NewSkill {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let name = validation.required_text("", &body, "name").unwrap_or_default();
        let organization = text_or(&mut validation, "", &body, "organization", "");
        let description = validation.optional_text("", &body, "description");
        let icons = icons(&mut validation, "", &body)?.map(Json::List);
        forbid_others(&mut validation, "", &body, &["name", "organization", "description", "icons"]);
        validation.finish()?;
        Ok(Self { name: SkillName::new(&organization, &name)?, description, icons })
    }
}

/// Changes of a skill (`UpdateSkillRequest`). An outer `None` means that the body does not have the
/// field, so the value does not change. `Some(None)` stands for null, which removes the value.
#[derive(Clone, Debug)]
pub struct UpdatedSkill {
    /// Description.
    pub description: Option<Option<String>>,
    /// Icons, as a list.
    pub icons: Option<Option<Json>>,
}

impl UpdatedSkill {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let description = validation.optional_text("", &body, "description");
        let icons = icons(&mut validation, "", &body)?.map(Json::List);
        forbid_others(&mut validation, "", &body, &["description", "icons"]);
        validation.finish()?;
        let sent = |key: &str| body.get(key).is_some();
        Ok(Self { description: sent("description").then_some(description), icons: sent("icons").then_some(icons) })
    }
}

/// A change of a version (`UpdateSkillVersionRequest`).
#[derive(Clone, Debug)]
pub struct UpdatedSkillVersion {
    /// The new status, as the client sent it. `None` if the request does not change the status.
    pub status: Option<String>,
}

impl UpdatedSkillVersion {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let status = validation.optional_text("", &body, "status");
        forbid_others(&mut validation, "", &body, &["status"]);
        validation.finish()?;
        if status.is_none() && body.get("status").is_some() {
            return Err(Error::invalid("status cannot be null; omit the field to leave it unchanged"));
        }
        Ok(Self { status })
    }

    /// Returns the new status, or `None` if the request does not change the status.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the text is not the name of a status.
    pub fn status(&self) -> Result<Option<SkillStatus>> {
        let parse = |status: &String| {
            let unknown = || Error::invalid(format!("Invalid SkillVersion status: {}", python::repr(status)));
            SkillStatus::from_name(status).ok_or_else(unknown)
        };
        self.status.as_ref().map(parse).transpose()
    }

    /// Checks whether the request deletes the version.
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.status.as_deref() == Some(SkillStatus::Deleted.name())
    }
}

/// An alias to set (`SetSkillAliasRequest`).
#[derive(Clone, Debug)]
pub struct SetSkillAlias {
    /// Alias.
    pub alias: String,
    /// Number of the version that the alias refers to.
    pub version: u32,
}

impl SetSkillAlias {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let alias = validation.required_text("", &body, "alias");
        let version = integer(&mut validation, &body, "version");
        forbid_others(&mut validation, "", &body, &["alias", "version"]);
        validation.finish()?;
        let version = version_number(&version.unwrap_or_default())?;
        let alias = alias.unwrap_or_default();
        check_alias(&alias)?;
        Ok(Self { alias, version })
    }
}

/// A tag to set (`SetTagRequest`).
#[derive(Clone, Debug)]
pub struct SetSkillTag {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

impl SetSkillTag {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let key = validation.required_text("", &body, "key");
        let value = validation.required_text("", &body, "value");
        forbid_others(&mut validation, "", &body, &["key", "value"]);
        validation.finish()?;
        let (key, value) = (key.unwrap_or_default(), value.unwrap_or_default());
        check_tag(&key, &value)?;
        Ok(Self { key, value })
    }
}

/// Checks an integer that is required. Returns its decimal digits, with a sign if it is negative,
/// so that an integer of any size can be quoted in an error.
fn integer(validation: &mut Validation, body: &JsonObject, key: &str) -> Option<String> {
    let mistake = match body.get(key) {
        None => "Field required",
        Some(Json::Integer(digits)) => return Some(digits.clone()),
        Some(Json::Bool(value)) => return Some(u8::from(*value).to_string()),
        Some(Json::Float(number)) if number.fract() == 0.0 => return Some(format!("{number:.0}")),
        Some(Json::Float(_)) => "Input should be a valid integer, got a number with a fractional part",
        Some(Json::Text(text)) => match whole_number(text) {
            Some(digits) => return Some(digits),
            None => "Input should be a valid integer, unable to parse string as an integer",
        },
        Some(_) => "Input should be a valid integer",
    };
    validation.fail(key, mistake);
    None
}

/// Checks the number of a version (`_validate_skill_version`).
fn version_number(digits: &str) -> Result<u32> {
    let number = digits.parse().ok().filter(|number| (1..=MAX_VERSION).contains(number));
    let refused =
        || Error::invalid(format!("Skill version must be a positive integer <= {MAX_VERSION}, got {digits}."));
    number.ok_or_else(refused)
}

/// Parses the number of a version in a path.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the text is not the number of a version.
pub fn version_in_path(text: &str) -> Result<u32> {
    let refused =
        || invalid_request("path.version: Input should be a valid integer, unable to parse string as an integer");
    version_number(&whole_number(text).ok_or_else(refused)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &str) -> Request {
        let content_type = Some("application/json".to_owned());
        Request { method: "POST".to_owned(), content_type, body: body.as_bytes().to_vec(), ..Request::default() }
    }

    #[test]
    fn mistakes_are_named_as_by_pydantic() {
        let of_skill = |body: &str| NewSkill::read(&request(body)).unwrap_err().message;
        let of_alias = |body: &str| SetSkillAlias::read(&request(body)).unwrap_err().message;
        assert_eq!(
            of_skill(r#"{"organization": null, "x": 1}"#),
            "Invalid request: name: Field required; organization: Input should be a valid string; x: Extra inputs are not permitted"
        );
        assert!(of_skill(r#"{"name": "A"}"#).starts_with("Invalid skill name 'A'. Names must be 1-64"));
        assert_eq!(
            of_alias(r#"{"alias": "a", "version": 1.5}"#),
            "Invalid request: version: Input should be a valid integer, got a number with a fractional part"
        );
        assert_eq!(
            of_alias(r#"{"alias": "a", "version": "-01"}"#),
            "Skill version must be a positive integer <= 2147483647, got -1."
        );
        assert!(of_alias(r#"{"alias": "Latest", "version": 1}"#).ends_with("is reserved."));
        assert_eq!(version_in_path("1.0"), Ok(1));
        assert!(version_in_path("x").unwrap_err().message.starts_with("Invalid request: path.version"));
    }
}

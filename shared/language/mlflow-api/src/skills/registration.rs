//! Registrations of versions: single ones, and bulk registrations.

use super::SkillStatus;
use super::bodies::{forbid_others, text_or};
use super::source::{SkillRegistration, SkillSource, SourceType};
use crate::json::JsonObject;
use crate::mcp_servers::validation::{Validation, body, within};
use crate::python::repr;
use crate::{Error, Json, Request, Result, SkillName, json};

/// Maximum number of skills in a bulk registration (`_MAX_BULK_REGISTER_SKILLS`).
const MAX_SKILLS: usize = 500;
/// The fields of a registration, except for the name and the organization of the skill.
const FIELDS: [&str; 6] = ["source_type", "source", "ref", "subpath", "digest", "status"];

impl SkillRegistration {
    /// Parses the metadata of a version, which is a JSON object. If it contains the name or the
    /// organization of the skill, they must match those in the path of the request.
    /// `no_json` is the error message for metadata that is not JSON.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the metadata.
    pub fn of_metadata(
        metadata: &[u8],
        (organization_in_path, name_in_path): (&str, &str),
        no_json: &str,
    ) -> Result<Self> {
        let refused = || Error::invalid(no_json);
        let text = json::to_utf8(metadata).map_err(|_| refused())?;
        let text = std::str::from_utf8(&text).map_err(|_| refused())?;
        let parsed = Json::parse(text).ok_or_else(refused)?;
        let Json::Object(object) = parsed else {
            return Err(Error::invalid(
                "Invalid registration metadata: 1 validation error for CreateSkillVersionRequest\n  Input should be a valid \
                 dictionary or instance of CreateSkillVersionRequest",
            ));
        };
        let mut validation = Validation::default();
        let sent_name = validation.optional_text("", &object, "name");
        let organization = text_or(&mut validation, "", &object, "organization", "");
        let registration = Self::of_fields(&mut validation, "", &object);
        forbid_others(&mut validation, "", &object, &[&["name", "organization"], FIELDS.as_slice()].concat());
        validation.finish().map_err(|error| {
            let mistakes = error.message.strip_prefix("Invalid request: ").unwrap_or(&error.message);
            let message = format!("Invalid registration metadata: {mistakes}");
            Error { message, ..error }
        })?;
        let others = [
            ("name", sent_name.as_deref() == Some(name_in_path)),
            ("organization", organization == organization_in_path),
        ];
        for (field, is_same) in others {
            if object.get(field).is_some() && !is_same {
                return Err(Error::invalid(format!("Registration metadata '{field}' must match the path identity.")));
            }
        }
        Ok(registration)
    }

    fn of_fields(validation: &mut Validation, at: &str, object: &JsonObject) -> Self {
        Self {
            source_type: validation.optional_text(at, object, "source_type"),
            source: validation.optional_text(at, object, "source"),
            reference: validation.optional_text(at, object, "ref"),
            subpath: validation.optional_text(at, object, "subpath"),
            digest: validation.optional_text(at, object, "digest"),
            status: text_or(validation, at, object, "status", SkillStatus::Active.name()),
        }
    }

    /// Checks the status, the digest and the type of the source (`_validate_metadata`), and returns
    /// the status.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses one of them.
    pub fn check(&self) -> Result<SkillStatus> {
        let status = SkillStatus::from_name(&self.status);
        let status = status.filter(|status| matches!(status, SkillStatus::Active | SkillStatus::Draft));
        let status = status.ok_or_else(|| {
            Error::invalid(format!(
                "A skill version can be registered as 'active' or 'draft', got {}.",
                repr(&self.status)
            ))
        })?;
        let is_digest = |digest: &String| {
            digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if !self.digest.as_ref().is_none_or(is_digest) {
            return Err(Error::invalid("'digest' must be a SHA-256 digest of 64 lowercase hex characters."));
        }
        if self.source_type.as_deref() == Some(SourceType::Mlflow.name()) {
            return Err(Error::invalid(
                "'source_type' 'mlflow' is set by the server from the creation flow and cannot be submitted.",
            ));
        }
        Ok(status)
    }

    /// Checks and returns the source of a version whose content is outside of MLflow. Returns
    /// `None` if the registration has no source.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the source.
    pub fn remote_source(&self) -> Result<Option<SkillSource>> {
        self.source.as_ref().map(|source| SkillSource::resolve(self, source)).transpose()
    }

    /// Checks that the metadata of an upload contains no field that describes a source.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if it contains one.
    pub fn check_upload(&self) -> Result<()> {
        let fields = [("source_type", &self.source_type), ("ref", &self.reference), ("subpath", &self.subpath)];
        match fields.into_iter().find(|(_, value)| value.is_some()) {
            None => Ok(()),
            Some((field, _)) => Err(Error::invalid(format!(
                "'{field}' does not apply to uploaded content; the whole uploaded tree is the skill and the server records \
                 where it stored it."
            ))),
        }
    }
}

/// A bulk registration (`BulkRegisterSkillsRequest`).
#[derive(Clone, Debug)]
pub struct BulkRegistration {
    /// The skills, in the order of the request, with their sources and digests.
    pub skills: Vec<(SkillName, SkillSource, String)>,
    /// The status of new versions.
    pub status: SkillStatus,
}

impl BulkRegistration {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let organization = text_or(&mut validation, "", &body, "organization", "");
        let sent = match body.get("skills") {
            None => {
                validation.fail("skills", "Field required");
                Vec::new()
            }
            Some(Json::Null) => {
                validation.fail("skills", "Input should be a valid list");
                Vec::new()
            }
            Some(Json::List(items)) if items.is_empty() => {
                validation.fail("skills", "List should have at least 1 item after validation, not 0");
                Vec::new()
            }
            Some(_) => validation.optional_list("", &body, "skills", Some(MAX_SKILLS)).unwrap_or_default(),
        };
        let mut registrations = Vec::with_capacity(sent.len());
        for (place, item) in sent.into_iter().enumerate() {
            let at = within("skills", place);
            let Some(object) = validation.model(&at, item) else { continue };
            let name = validation.required_text(&at, &object, "name").unwrap_or_default();
            let mut registration = SkillRegistration::of_fields(&mut validation, &at, &object);
            for (key, value) in [("source", &mut registration.source), ("digest", &mut registration.digest)] {
                if value.is_none() && object.get(key).is_none_or(|value| *value == Json::Null) {
                    *value = validation.required_text(&at, &object, key);
                }
            }
            forbid_others(&mut validation, &at, &object, &[&["name"], FIELDS.as_slice()].concat());
            registrations.push((name, registration));
        }
        forbid_others(&mut validation, "", &body, &["organization", "skills"]);
        validation.finish()?;
        let named = registrations
            .into_iter()
            .map(|(name, registration)| Ok((SkillName::new(&organization, &name)?, registration)))
            .collect::<Result<Vec<_>>>()?;
        Self::of_registrations(named)
    }

    fn of_registrations(registrations: Vec<(SkillName, SkillRegistration)>) -> Result<Self> {
        let mut skills: Vec<(SkillName, SkillSource, String)> = Vec::with_capacity(registrations.len());
        let mut of_all = None;
        let mut resolved = Vec::with_capacity(registrations.len());
        for (name, registration) in registrations {
            let status = registration.check()?;
            if *of_all.get_or_insert(status) != status {
                return Err(Error::invalid("Bulk registration requires the same status for every Skill."));
            }
            let source = registration.remote_source()?;
            resolved.push((name, source, registration.digest));
        }
        let mut names = std::collections::HashSet::new();
        for (name, source, digest) in resolved {
            let git = source.filter(|source| source.kind == SourceType::Git);
            let (Some(source), Some(digest)) = (git, digest) else {
                return Err(Error::invalid("Bulk registration requires a Git source and digest for every Skill."));
            };
            if !names.insert(name.clone()) {
                return Err(Error::invalid(format!("Duplicate Skill name: {}.", repr(name.name()))));
            }
            if let Some((_, first, _)) = skills.first()
                && (&first.location, &first.reference) != (&source.location, &source.reference)
            {
                return Err(Error::invalid(
                    "Bulk registration requires the same Git repository and ref for every Skill.",
                ));
            }
            skills.push((name, source, digest));
        }
        Ok(Self { skills, status: of_all.unwrap_or(SkillStatus::Active) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(body: &str) -> Result<BulkRegistration> {
        let content_type = Some("application/json".to_owned());
        let body = body.replace('\'', "\"").replace("DIGEST", &"0".repeat(64)).into_bytes();
        BulkRegistration::read(&Request { method: "POST".to_owned(), content_type, body, ..Request::default() })
    }

    #[test]
    fn a_bulk_registration_is_of_one_repository() {
        let one = "{'name': 'a', 'source': 'https://h/a.git', 'digest': 'DIGEST'}";
        assert_eq!(bulk(&format!("{{'skills': [{one}]}}")).unwrap().skills.len(), 1);
        for (skills, expected) in [
            ("", "Invalid request: skills: List should have at least 1 item after validation, not 0"),
            ("{'name': 'a'}", "Invalid request: skills.0.source: Field required; skills.0.digest: Field required"),
            (&format!("{one}, {one}"), "Duplicate Skill name: 'a'."),
            (
                &format!("{one}, {}", one.replace("'a'", "'b'").replace("a.git", "b.git")),
                "Bulk registration requires the same Git repository and ref for every Skill.",
            ),
            (&one.replace("a.git", "a.zip"), "Bulk registration requires a Git source and digest for every Skill."),
        ] {
            assert_eq!(bulk(&format!("{{'skills': [{skills}]}}")).unwrap_err().message, expected);
        }
    }
}

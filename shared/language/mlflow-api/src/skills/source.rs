//! Sources of skills outside of MLflow (`mlflow/genai/skill_content/sources.py`). The server never
//! sends a request to a source.

use super::content_path::subpath;
use super::image_reference;
use crate::python::repr;
use crate::{Error, Result};

/// Maximum length of a source, of a reference, and of a subpath, in characters.
const MAX_LENGTH: usize = 2_048;
/// Prefixes of locations within MLflow.
const MLFLOW_PREFIXES: [&str; 3] = ["mlflow-artifacts:/", "runs:/", "models:/"];
/// Names of query parameters that contain credentials, in lower case.
const CREDENTIALS: [&str; 10] = [
    "access_token",
    "googleaccessid",
    "sig",
    "signature",
    "token",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
    "x-goog-credential",
    "x-goog-signature",
];

/// The type of a source (`SkillSourceType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceType {
    /// A git repository.
    Git,
    /// An image in an OCI registry.
    Oci,
    /// A zip archive.
    Zip,
    /// Content that was uploaded to MLflow.
    Mlflow,
}

impl SourceType {
    /// Returns MLflow's name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Oci => "oci",
            Self::Zip => "zip",
            Self::Mlflow => "mlflow",
        }
    }

    /// Returns the type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Git, Self::Oci, Self::Zip, Self::Mlflow].into_iter().find(|kind| kind.name() == name)
    }
}

/// A registration of a version (`SkillVersionRegistration`), as the client sent it.
#[derive(Clone, Debug, Default)]
pub struct SkillRegistration {
    /// Type of the source.
    pub source_type: Option<String>,
    /// Location of the content. Missing if the request uploads the content.
    pub source: Option<String>,
    /// Branch, tag or commit of a git repository.
    pub reference: Option<String>,
    /// Directory of the skill within the source.
    pub subpath: Option<String>,
    /// Digest of the content.
    pub digest: Option<String>,
    /// Status.
    pub status: String,
}

/// The location of a version's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillSource {
    /// Type.
    pub kind: SourceType,
    /// URL, reference of an image, or the `mlflow-artifacts:/` URI of uploaded content.
    pub location: String,
    /// Branch, tag or commit of a git repository.
    pub reference: Option<String>,
    /// Directory of the skill within the repository, the image or the archive.
    pub subpath: Option<String>,
}

impl SkillSource {
    /// Checks a source that a client sent, and determines its type (`_resolve_remote_source`).
    pub(super) fn resolve(sent: &SkillRegistration, source: &str) -> Result<Self> {
        let written = source.trim();
        let inside = || {
            Error::invalid(format!(
                "'source' {} names content inside MLflow; a remote source must be a git, oci, or zip location. Upload \
                 local content instead of pointing at it.",
                repr(source)
            ))
        };
        let lowered = written.to_lowercase();
        if MLFLOW_PREFIXES.iter().any(|prefix| lowered.starts_with(prefix)) {
            return Err(inside());
        }
        let kind = sent.source_type.as_deref();
        if kind != Some(SourceType::Oci.name()) && is_local_path(written) {
            return Err(Error::invalid(format!(
                "'source' must be a remote git, oci, or zip location, got {}. The server never reads a path on its own \
                 filesystem; local content is uploaded instead.",
                repr(source)
            )));
        }
        let resolved = match kind {
            None => Self::inferred(sent, written)?,
            Some(kind) => Self::of_type(sent, kind, source, &lowered)?,
        };
        if resolved.kind == SourceType::Oci {
            image_reference::check(&resolved.location, &redacted(&resolved.location))?;
        }
        Ok(resolved)
    }

    /// Checks a source whose type (`kind`) the client sent. `lowered` is the source in lower case.
    fn of_type(sent: &SkillRegistration, kind: &str, source: &str, lowered: &str) -> Result<Self> {
        let known = SourceType::from_name(kind).filter(|kind| *kind != SourceType::Mlflow).ok_or_else(|| {
            Error::invalid(format!("Unknown 'source_type' {}; expected one of ['git', 'oci', 'zip'].", repr(kind)))
        })?;
        let of_scheme = [("oci://", SourceType::Oci), ("git://", SourceType::Git)];
        let of_scheme = of_scheme.into_iter().find(|(scheme, _)| lowered.starts_with(scheme)).map(|(_, kind)| kind);
        if let Some(named) = of_scheme.filter(|named| *named != known) {
            return Err(Error::invalid(format!(
                "'source_type' {} contradicts the '{}' scheme of 'source' {}.",
                repr(kind),
                named.name(),
                repr(source)
            )));
        }
        if known != SourceType::Git && sent.reference.is_some() {
            return Err(Error::invalid("'ref' applies to git sources only."));
        }
        let subpath = checked_subpath(sent)?;
        let location = match known {
            SourceType::Oci => {
                let image = source.strip_prefix("oci://").unwrap_or(source);
                if image.is_empty() {
                    return Err(Error::invalid("OCISource image reference must not be empty."));
                }
                check_remote("OCI image reference", image)?;
                image
            }
            SourceType::Zip => {
                check_zip(source)?;
                source
            }
            SourceType::Git | SourceType::Mlflow => {
                check_git(source, sent.reference.as_deref())?;
                source
            }
        };
        Ok(Self { kind: known, location: location.to_owned(), reference: sent.reference.clone(), subpath })
    }

    /// Infers the type of a source from its scheme and its ending (`_infer_remote_type`).
    fn inferred(sent: &SkillRegistration, source: &str) -> Result<Self> {
        let subpath = checked_subpath(sent)?;
        let path = path_of(source);
        // Endings are case-sensitive, as in MLflow.
        let ends_in = |ending: &str| path.strip_suffix(ending).is_some();
        let (kind, location) = if let Some(image) = source.strip_prefix("oci://") {
            if image.is_empty() {
                return Err(Error::invalid("OCI source must include an image reference after 'oci://'."));
            }
            (SourceType::Oci, image)
        } else if source.starts_with("git://") || ends_in(".git") || ends_in(".git/") {
            (SourceType::Git, source)
        } else if ends_in(".zip") {
            (SourceType::Zip, source)
        } else {
            return Err(Error::invalid(format!(
                "Cannot infer the source type of '{}'. Pass a typed source (GitSource, OCISource, or ZipSource) or use a \
                 URL that ends in '.git' or '.zip', or starts with 'git://' or 'oci://'.",
                redacted(source)
            )));
        };
        if kind != SourceType::Git && sent.reference.is_some() {
            return Err(Error::invalid("'ref' applies to Git sources only."));
        }
        match kind {
            SourceType::Git => check_git(location, sent.reference.as_deref())?,
            SourceType::Zip => check_zip(location)?,
            SourceType::Oci | SourceType::Mlflow => check_remote("Source", location)?,
        }
        Ok(Self { kind, location: location.to_owned(), reference: sent.reference.clone(), subpath })
    }
}

fn checked_subpath(sent: &SkillRegistration) -> Result<Option<String>> {
    let subpath = subpath(sent.subpath.as_deref())?;
    if let Some(subpath) = &subpath {
        check_length("Subpath", subpath)?;
    }
    Ok(subpath)
}

/// Checks whether a text is a path on a file system rather than a URL (`is_local_path`).
fn is_local_path(source: &str) -> bool {
    if let [drive, b':', b'/' | b'\\', ..] = source.as_bytes()
        && drive.is_ascii_alphabetic()
    {
        return true;
    }
    !source.contains("://") && !is_scp(source)
}

/// Checks whether a text is the address of a git repository in the syntax of `scp`:
/// `user@host:path`, or `host:path` with a dot in the name of the host.
fn is_scp(source: &str) -> bool {
    let Some((host, _)) = source.split_once(':') else { return false };
    let is_word = |text: &str, others: &str| {
        let is_character =
            |character: char| character.is_alphanumeric() || character == '_' || others.contains(character);
        !text.is_empty() && text.chars().all(is_character)
    };
    match host.split_once('@') {
        Some((user, host)) => is_word(user, ".-") && is_word(host, ".-"),
        None => host.contains('.') && host.split('.').all(|part| is_word(part, "-")),
    }
}

fn check_length(what: &str, text: &str) -> Result<()> {
    let length = text.chars().count();
    if length <= MAX_LENGTH {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} is {length} characters long; the maximum is {MAX_LENGTH}.")))
}

fn check_remote(what: &str, value: &str) -> Result<()> {
    if value.starts_with('-') {
        return Err(Error::invalid(format!("{what} must not start with '-': '{}'.", redacted(value))));
    }
    if value.contains(|character: char| character.is_whitespace() || character <= '\x1f' || character == '\x7f') {
        return Err(Error::invalid(format!("{what} must not contain whitespace or control characters.")));
    }
    check_length(what, value)
}

fn check_git(url: &str, reference: Option<&str>) -> Result<()> {
    check_remote("Git URL", url)?;
    if let Some((scheme, _)) = url.split_once("://") {
        let (user, password) = user_of(url);
        let is_web = ["http", "https"].contains(&scheme.to_lowercase().as_str());
        if !password.is_empty() || (is_web && !user.is_empty()) {
            return Err(Error::invalid(
                "Git URL must not contain credentials; they would be stored with the skill version. Configure a credential \
                 helper and remove them from the URL.",
            ));
        }
    }
    match reference {
        Some("") => Err(Error::invalid("Git ref must not be empty.")),
        Some(reference) => check_remote("Git ref", reference),
        None => Ok(()),
    }
}

fn check_zip(url: &str) -> Result<()> {
    check_remote("ZIP URL", url)?;
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme).to_lowercase();
    if !["http", "https"].contains(&scheme.as_str()) {
        return Err(Error::invalid(format!("ZIP source must be an http(s) URL, got '{}'.", redacted(url))));
    }
    let (user, password) = user_of(url);
    if !user.is_empty() || !password.is_empty() {
        return Err(Error::invalid(
            "ZIP sources are fetched without authentication and must be publicly accessible; remove the credentials from the \
             URL or use a Git or OCI source instead.",
        ));
    }
    let query = url.split('#').next().and_then(|url| url.split_once('?')).map_or("", |(_, query)| query);
    let names = crate::Request::parse_query(query);
    if names.iter().any(|(name, _)| CREDENTIALS.contains(&name.to_lowercase().as_str())) {
        return Err(Error::invalid(
            "ZIP sources must be publicly accessible and must not contain credentials in the query string. Remove the signed \
             query parameters or use a Git or OCI source instead.",
        ));
    }
    Ok(())
}

/// Returns the authority of a URL: the host, and the user and the port if the URL contains them.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Returns the name of the user and the password in a URL. Each is empty if the URL does not
/// contain it.
fn user_of(url: &str) -> (&str, &str) {
    let user = authority(url).rsplit_once('@').map_or("", |(user, _)| user);
    user.split_once(':').unwrap_or((user, ""))
}

/// Returns the path of a URL.
fn path_of(url: &str) -> &str {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|start| rest.get(start..)).unwrap_or_default(),
        None => url,
    }
}

/// Returns a URL for an error message, in which credentials are replaced by `***`
/// (`redact_credentials`).
fn redacted(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.rsplit_once('@').map_or_else(|| host.to_owned(), |(_, host)| format!("***@{host}"));
    let is_web = ["http", "https"].contains(&scheme.to_lowercase().as_str());
    let path = match path.split_once('?') {
        Some((path, _)) if is_web => format!("{path}?***"),
        _ => path.to_owned(),
    };
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(source: &str, kind: Option<&str>, reference: Option<&str>) -> Result<SkillSource> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let sent = SkillRegistration { source_type: text(kind), reference: text(reference), ..Default::default() };
        SkillSource::resolve(&sent, source)
    }

    #[test]
    fn types_are_inferred_from_schemes_and_endings() {
        for (source, kind, expected) in [
            ("https://h/a.git", None, SourceType::Git),
            (" https://h/a.git/ ", None, SourceType::Git),
            ("git://h/a", None, SourceType::Git),
            ("git@h:acme/a.git", None, SourceType::Git),
            ("ssh://git@h/a", Some("git"), SourceType::Git),
            ("https://h/a.zip?download=1", None, SourceType::Zip),
            ("oci://ghcr.io/acme/a:v1", None, SourceType::Oci),
            ("ghcr.io/acme/a:v1", Some("oci"), SourceType::Oci),
        ] {
            assert_eq!(resolve(source, kind, None).unwrap().kind, expected, "{source}");
        }
        assert_eq!(resolve("oci://ghcr.io/acme/a", None, None).unwrap().location, "ghcr.io/acme/a");
    }

    #[test]
    fn other_sources_are_refused() {
        for (source, kind, reference) in [
            ("", None, None),
            ("/etc", None, None),
            ("c:\\skills", Some("git"), None),
            ("acme/a", None, None),
            ("Models:/m/1", Some("git"), None),
            ("https://h/a", None, None),
            ("https://user@h/a.git", None, None),
            ("ssh://git:x@h/a.git", None, None),
            ("https://h/a.git", None, Some("-x")),
            ("https://h/a.git", None, Some("")),
            ("https://h/a.zip", None, Some("v1")),
            ("https://h/a.zip?X-Amz-Signature=1", None, None),
            ("ftp://h/a.zip", None, None),
            ("oci://h/a", Some("git"), None),
            ("https://h/a.git", Some("mlflow"), None),
        ] {
            assert!(resolve(source, kind, reference).is_err(), "{source} {kind:?}");
        }
        let message = resolve("https://u:p@h/a?token=x", None, None).unwrap_err().message;
        assert!(message.starts_with("Cannot infer the source type of 'https://***@h/a?***'."), "{message}");
    }
}

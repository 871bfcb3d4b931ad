//! References to images in OCI registries (`parse_image_reference`).

use crate::python::repr;
use crate::{Error, Result};

/// Checks the reference of an image, such as `ghcr.io/acme/skills:v1`. `shown` is the reference for
/// error messages, without credentials.
pub(super) fn check(image: &str, shown: &str) -> Result<()> {
    let value = image.trim();
    if value.is_empty() {
        return Err(Error::invalid("OCI image reference must not be empty."));
    }
    let malformed = || Error::invalid(format!("OCI image reference '{shown}' is malformed."));
    let (name, reference) = if let Some((name, digest)) = value.split_once('@') {
        if !is_digest(digest) {
            return Err(Error::invalid(format!(
                "OCI image digest in '{shown}' must be a sha256 digest of 64 hex characters, got {}.",
                repr(digest)
            )));
        }
        (without_tag(name).0, digest)
    } else {
        let (name, tag) = without_tag(value);
        (name, tag.unwrap_or("latest"))
    };
    if name.is_empty() {
        return Err(Error::invalid(format!("OCI image reference '{shown}' has no repository.")));
    }
    let (registry, repository) = match name.split_once('/') {
        Some((first, rest))
            if !rest.is_empty() && (first.contains(['.', ':']) || first.to_lowercase() == "localhost") =>
        {
            (first.to_lowercase(), rest.to_owned())
        }
        _ => ("docker.io".to_owned(), name.clone()),
    };
    if repository.is_empty() || reference.is_empty() || repository.split('/').any(str::is_empty) {
        return Err(malformed());
    }
    if !is_registry(&registry) {
        return Err(Error::invalid(format!("OCI image reference '{shown}' has an invalid registry host.")));
    }
    if let Some(component) = repository.split('/').find(|component| !is_component(component)) {
        return Err(Error::invalid(format!(
            "OCI image reference '{shown}' has an invalid repository component '{component}'; components are lowercase \
             alphanumerics separated by '.', '_', or '-'."
        )));
    }
    if !reference.starts_with("sha256:") && !is_tag(reference) {
        return Err(Error::invalid(format!("OCI image reference '{shown}' has an invalid tag '{reference}'.")));
    }
    Ok(())
}

/// Returns the name of an image without its tag, and the tag.
fn without_tag(value: &str) -> (String, Option<&str>) {
    let (head, tail) = value.rsplit_once('/').map_or((None, value), |(head, tail)| (Some(head), tail));
    let (tail, tag) = tail.split_once(':').map_or((tail, None), |(tail, tag)| (tail, Some(tag)));
    let name = head.filter(|head| !head.is_empty()).map_or_else(|| tail.to_owned(), |head| format!("{head}/{tail}"));
    (name, tag)
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|digest| {
        digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_label = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_address =
        |host: &str| !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
    port.is_none_or(is_port) && address.map_or_else(|| host.split('.').all(is_label), is_address)
}

/// Checks whether a text consists of lowercase letters and digits, separated by `.`, `_`, `__`, or
/// any number of hyphens.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separators = text.split(|character: char| u8::try_from(character).is_ok_and(is_word));
    let edges = [text.bytes().next(), text.bytes().next_back()];
    edges.iter().all(|edge| edge.is_some_and(is_word))
        && separators
            .into_iter()
            .all(|part| part.is_empty() || matches!(part, "." | "_" | "__") || part.bytes().all(|byte| byte == b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_character = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    text.len() <= 128 && !text.starts_with(['.', '-']) && !text.is_empty() && text.bytes().all(is_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_the_grammar_of_registries() {
        let digest = format!("acme/skills@sha256:{}", "0".repeat(64));
        for image in
            ["skills", "acme/skills:v1", "ghcr.io/acme/a--b_c.d:1.0", "localhost:5000/x", "[::1]:5000/x", &digest]
        {
            assert!(check(image, image).is_ok(), "{image}: {:?}", check(image, image));
        }
        for image in [
            "",
            "/",
            "acme/",
            "acme//x",
            "Acme/x",
            "a/b:-v",
            "a/b@sha256:0",
            "-a.io/x",
            "a/b_-c",
            "a/b:",
            "ghcr.io/a:b:c",
        ] {
            assert!(check(image, image).is_err(), "{image}");
        }
    }
}

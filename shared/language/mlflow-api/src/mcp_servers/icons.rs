//! Icons of servers, versions and tools (`MCPIconRequestPayload`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::validation::{Validation, within};
use crate::json::JsonObject;
use crate::python::repr;
use crate::{Error, Json, Result};

/// Maximum number of icons in a list (`_MAX_REGISTRY_ICONS_PER_LIST`).
pub const MAX_ICONS: usize = 100;

/// Checks a list of icons and returns it as it is stored. `at` is the path of the object that has
/// the list, and `field` the name of the list in messages about the source of an icon.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if a URL or a media type is refused. Other mistakes are
/// recorded.
pub(crate) fn icons(validation: &mut Validation, at: &str, object: &JsonObject) -> Result<Option<Vec<Json>>> {
    let Some(items) = validation.optional_list(at, object, "icons", Some(MAX_ICONS)) else { return Ok(None) };
    let at = within(at, "icons");
    let mut icons = Vec::with_capacity(items.len());
    for (place, item) in items.into_iter().enumerate() {
        let at = within(&at, place);
        let Some(icon) = validation.model(&at, item) else { continue };
        icons.push(Json::Object(self::icon(validation, &at, icon)?));
    }
    Ok(Some(icons))
}

/// Checks an icon and normalizes it: its media type is in lower case, and fields without a value
/// are left out.
fn icon(validation: &mut Validation, at: &str, mut icon: JsonObject) -> Result<JsonObject> {
    if let Some(src) = validation.required_text(at, &icon, "src") {
        check_url(&src)?;
    }
    if let Some(sizes) = validation.optional_list(at, &icon, "sizes", None) {
        for (place, size) in sizes.iter().enumerate() {
            if !matches!(size, Json::Text(_)) {
                validation.fail(&within(&within(at, "sizes"), place), "Input should be a valid string");
            }
        }
    }
    if let Some(media_type) = validation.optional_text(at, &icon, "mimeType") {
        icon.update([("mimeType".to_owned(), Json::Text(checked_media_type(&media_type)?))]);
    }
    validation.optional_text(at, &icon, "theme");
    for key in ["sizes", "mimeType", "theme"] {
        if icon.get(key) == Some(&Json::Null) {
            icon.remove(key);
        }
    }
    Ok(icon)
}

/// Removes the fields of icons that only responses have (`_strip_mcp_icon_response_fields`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the source of an icon is `version`. Responses contain
/// such an icon if a server takes it from its latest version. Storing it would make it the server's
/// own icon.
pub(super) fn without_source(icons: Vec<Json>, field: &str) -> Result<Vec<Json>> {
    let strip = |(place, icon): (usize, Json)| {
        let Json::Object(mut icon) = icon else { return Ok(icon) };
        match icon.remove("source") {
            Some(Json::Text(source)) if source == "version" => Err(Error::invalid(format!(
                "Invalid {field}[{place}].source: 'version' is response-only and cannot be written. Writing it would \
                 persist a version-resolved icon as a server override. Omit source, or send source='server' when \
                 echoing a server icon."
            ))),
            _ => Ok(Json::Object(icon)),
        }
    };
    icons.into_iter().enumerate().map(strip).collect()
}

fn checked_media_type(written: &str) -> Result<String> {
    let normalized = written.trim().to_lowercase();
    if normalized.starts_with("image/") && normalized != "image/" {
        return Ok(normalized);
    }
    Err(Error::invalid(format!(
        "Invalid icon mimeType {}. Allowed values must use the 'image/*' media type.",
        repr(written)
    )))
}

/// Checks the URL of an icon (`_validate_icon_url`). MLflow also resolves the host. This server
/// sends no requests to addresses that clients choose, so it only refuses addresses that are
/// written in the URL.
fn check_url(url: &str) -> Result<()> {
    if url.trim().is_empty() {
        return Err(Error::invalid(format!("Icon URL cannot be empty or just whitespace: {}", repr(url))));
    }
    let scheme = scheme_of(url);
    if scheme != "https" {
        return Err(Error::invalid(format!(
            "Invalid Icon URL scheme: {}. Allowed schemes are: 'https'.",
            repr(&scheme)
        )));
    }
    super::limits::at_most("src", super::limits::MAX_URL_LENGTH, url)?;
    let without_host = || Error::invalid(format!("Icon URL must include a hostname: {}", repr(url)));
    // The parser skips missing, additional and reversed slashes before the host.
    let authority = url.split_once("//").map_or("", |(_, rest)| rest);
    if authority.is_empty() || authority.starts_with(['/', '\\', '?', '#', ':']) {
        return Err(without_host());
    }
    // As in MLflow, the port is not checked.
    let parsed = match Url::parse(url) {
        Err(url::ParseError::InvalidPort) => Url::parse(&url.replacen(port_of(authority), "", 1)),
        parsed => parsed,
    };
    let parsed = parsed.map_err(|_| without_host())?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(Error::invalid(format!("Icon URL must not include embedded credentials: {}", repr(url))));
    }
    let address = match parsed.host().ok_or_else(without_host)? {
        Host::Ipv4(address) => {
            let written = address.to_string();
            // The parser normalizes other notations of an address, such as `127.1` and
            // `0x7f.0.0.1`. They are refused.
            let authority = url.split_once("://").map_or("", |(_, rest)| rest);
            if !authority.starts_with(&written) {
                let host = authority.split(['/', ':', '?', '#']).next().unwrap_or_default();
                return Err(Error::invalid(format!(
                    "Icon URL host {} is not a canonical IP address literal.",
                    repr(host)
                )));
            }
            Some((written, IpAddr::V4(address)))
        }
        Host::Ipv6(address) => Some((address.to_string(), IpAddr::V6(address))),
        Host::Domain(domain) => {
            let domain = domain.trim_end_matches('.');
            let is_local = domain == "localhost" || domain.ends_with(".localhost");
            is_local.then(|| (domain.to_owned(), IpAddr::V4(Ipv4Addr::LOCALHOST)))
        }
    };
    match address {
        Some((host, address)) if !is_public(address) => Err(Error::invalid(format!(
            "Icon URL must not resolve to a non-public IP address. {} resolves to {address}.",
            repr(&host)
        ))),
        _ => Ok(()),
    }
}

/// Returns the port in a URL without its scheme, with the colon, or an empty text.
fn port_of(authority: &str) -> &str {
    let authority = authority.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    authority.rfind(':').and_then(|colon| authority.get(colon..)).unwrap_or_default()
}

/// Returns the scheme of a URL in lower case, or an empty text, as Python's `urlparse` does.
fn scheme_of(url: &str) -> String {
    let url = url.trim_start_matches(|character: char| character <= ' ');
    match url.split_once(':') {
        Some((scheme, _))
            if scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character)) =>
        {
            scheme.to_ascii_lowercase()
        }
        _ => String::new(),
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or_else(|| is_public_v6(address), is_public_v4),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || first == 0
        || first >= 240
        || (first == 100 && (64..128).contains(&second))
        || (first == 198 && matches!(second, 18 | 19))
        || (first, second, third) == (192, 0, 0))
}

/// Checks whether an address is in the range of global unicast addresses, and not reserved for
/// documentation or for tunnels to other addresses.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_reserved = (first == 0x2001 && (second < 0x200 || second == 0xdb8)) || first == 0x2002;
    first & 0xe000 == 0x2000 && !is_reserved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_icons_are_public_https() {
        for url in [
            "https://example.com/i.png",
            "https://8.8.8.8/i",
            "HTTPS://example.com",
            "https://[2606:4700::1]/i",
            "https://8.8.8.8:99999/",
        ] {
            assert!(check_url(url).is_ok(), "{url}: {:?}", check_url(url));
        }
        for url in [
            "",
            " ",
            "example.com/i",
            "http://example.com",
            "data:image/png;base64,x",
            "javascript:alert(1)",
            "https://",
            "https:example.com",
            "https:///example.com",
            "https:\\\\example.com",
            "https://u:p@example.com/",
            "https://10.0.0.1/i",
            "https://127.1/i",
            "https://0x7f.0.0.1",
            "https://2130706433",
            "https://localhost/i",
            "https://a.localhost./",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://169.254.169.254/latest",
            "https://[fd00::1]/",
            "https://[64:ff9b::a00:1]/",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}

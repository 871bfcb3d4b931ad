//! Request bodies of the registry of MCP servers.

use super::icons::{icons, without_source};
use super::limits::{
    MAX_ALIAS_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_DISPLAY_NAME_LENGTH, MAX_SOURCE_LENGTH, MAX_TAG_KEY_LENGTH,
    MAX_TAG_VALUE_LENGTH, MAX_URL_LENGTH, at_most,
};
use super::server_json::{ServerJson, server_json};
use super::status::{McpStatus, TransportType};
use super::tools::{connect_options, tools, without_icon_sources};
use super::validation::{Validation, body, invalid_request};
use crate::json::JsonObject;
use crate::{Error, Json, McpServerName, Request, Result, python};

/// A new server (`CreateMCPServerRequest`).
#[derive(Clone, Debug)]
pub struct NewMcpServer {
    /// Name.
    pub name: McpServerName,
    /// Description.
    pub description: Option<String>,
    /// Icons, as a list.
    pub icons: Option<Json>,
}

impl NewMcpServer {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let name = validation.required_text("", &body, "name");
        let description = validation.optional_text("", &body, "description");
        let icons = icons(&mut validation, "", &body)?;
        validation.finish()?;
        let name = McpServerName::parse(&name.unwrap_or_default())?;
        let icons = icons.map(|icons| without_source(icons, "icons")).transpose()?.map(Json::List);
        at_most("description", MAX_DESCRIPTION_LENGTH, description.as_deref().unwrap_or_default())?;
        Ok(Self { name, description, icons })
    }
}

/// Changes of a server (`UpdateMCPServerRequest`). A field that is missing in the body keeps its
/// value, and a null removes the value.
#[derive(Clone, Debug)]
pub struct UpdatedMcpServer {
    /// Name that user interfaces display.
    pub display_name: Option<Option<String>>,
    /// Description.
    pub description: Option<Option<String>>,
    /// Icons, as a list.
    pub icons: Option<Option<Json>>,
}

impl UpdatedMcpServer {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        if body.get("latest_version").is_some() {
            return Err(invalid_request(
                "Value error, latest_version is read-only; it is resolved automatically from semantic-version ordering",
            ));
        }
        let display_name = sent_text(&mut validation, &body, "display_name");
        let description = sent_text(&mut validation, &body, "description");
        let icons = icons(&mut validation, "", &body)?;
        validation.finish()?;
        let icons = icons.map(|icons| without_source(icons, "icons")).transpose()?.map(Json::List);
        let icons = body.get("icons").map(|_| icons);
        at_most("display_name", MAX_DISPLAY_NAME_LENGTH, text(display_name.as_ref()))?;
        at_most("description", MAX_DESCRIPTION_LENGTH, text(description.as_ref()))?;
        Ok(Self { display_name, description, icons })
    }
}

/// Returns a text field, or `None` if the body does not have the field. The inner value is `None`
/// if the field is null.
#[expect(clippy::option_option, reason = "a field that was not sent is not a null")]
fn sent_text(validation: &mut Validation, body: &JsonObject, key: &str) -> Option<Option<String>> {
    body.get(key).map(|_| validation.optional_text("", body, key))
}

fn text(sent: Option<&Option<String>>) -> &str {
    sent.and_then(Option::as_deref).unwrap_or_default()
}

/// A new version (`CreateMCPServerVersionRequest`).
#[derive(Clone, Debug)]
pub struct NewMcpVersion {
    /// Description of the server.
    pub server_json: ServerJson,
    /// Status.
    pub status: McpStatus,
    /// Origin of the version, as declared by the client.
    pub source: Option<String>,
    /// Tools, as a list.
    pub tools: Option<Json>,
    /// Connection options, as an object.
    pub connect_options: Option<Json>,
}

impl NewMcpVersion {
    /// Parses the body of a request for a version of this server.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request, server: &str) -> Result<(McpServerName, Self)> {
        let (body, mut validation) = (unwrapped(body(request)?)?, Validation::default());
        let server_json = server_json(&mut validation, &body)?;
        let status = match body.get("status") {
            None => Some(McpStatus::Draft.name().to_owned()),
            Some(_) => validation.required_text("", &body, "status"),
        };
        let source = validation.optional_text("", &body, "source");
        let tools = tools(&mut validation, &body)?;
        let connect_options = connect_options(&mut validation, &body);
        validation.finish()?;
        let server_json = server_json.ok_or_else(|| Error::internal("a body without mistakes has a server_json"))?;
        McpServerName::parse(&server_json.name)?;
        let name = McpServerName::parse(server)?;
        if server_json.name != server {
            return Err(Error::invalid(format!(
                "server_json.name '{}' does not match path parameter '{server}'",
                server_json.name
            )));
        }
        let status = McpStatus::parse(&status.unwrap_or_default())?;
        let tools = without_icon_sources(tools)?;
        let server_json = server_json.without_icon_sources()?;
        if server_json.version.is_empty() {
            return Err(Error::invalid("server_json must contain 'name' and 'version' keys"));
        }
        at_most("source", MAX_SOURCE_LENGTH, source.as_deref().unwrap_or_default())?;
        Ok((name, Self { server_json, status, source, tools, connect_options }))
    }
}

/// Replaces a response of the protocol's registry, which contains the `server_json`, by its content
/// (`_unwrap_registry_server_json_envelope`).
fn unwrapped(mut body: JsonObject) -> Result<JsonObject> {
    let Some(Json::Object(envelope)) = body.get("server_json") else { return Ok(body) };
    let has = |object: &JsonObject| object.get("name").is_some() && object.get("version").is_some();
    if has(envelope) {
        return Ok(body);
    }
    match envelope.get("server") {
        None => Ok(body),
        Some(Json::Object(server)) => {
            if has(server) {
                let server = Json::Object(server.clone());
                body.update([("server_json".to_owned(), server)]);
            }
            Ok(body)
        }
        Some(_) => Err(invalid_request("Value error, server_json.server: Input should be a valid dictionary")),
    }
}

/// Changes of a version (`UpdateMCPServerVersionRequest`).
#[derive(Clone, Debug)]
pub struct UpdatedMcpVersion {
    /// Status.
    pub status: Option<McpStatus>,
    /// Tools, as a list.
    pub tools: Option<Option<Json>>,
    /// Connection options, as an object.
    pub connect_options: Option<Option<Json>>,
}

impl UpdatedMcpVersion {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let status = sent_text(&mut validation, &body, "status");
        let tools = tools(&mut validation, &body)?;
        let connect_options = connect_options(&mut validation, &body);
        validation.finish()?;
        let status = match status {
            None => None,
            Some(None) => {
                return Err(Error::invalid("status cannot be null; omit the field to leave it unchanged"));
            }
            Some(Some(status)) => Some(McpStatus::parse(&status)?),
        };
        let tools = without_icon_sources(tools)?;
        let tools = body.get("tools").map(|_| tools);
        let connect_options = body.get("connect_options").map(|_| connect_options);
        Ok(Self { status, tools, connect_options })
    }
}

/// A new access endpoint (`CreateMCPAccessEndpointRequest`). Exactly one of the version and the
/// alias is set.
#[derive(Clone, Debug)]
pub struct NewAccessEndpoint {
    /// Version that the endpoint gives access to.
    pub server_version: Option<String>,
    /// Alias of the version that the endpoint gives access to.
    pub server_alias: Option<String>,
    /// URL.
    pub url: String,
    /// Transport.
    pub transport_type: TransportType,
}

impl NewAccessEndpoint {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let server_version = validation.optional_text("", &body, "server_version");
        let server_alias = validation.optional_text("", &body, "server_alias");
        let url = validation.required_text("", &body, "url");
        let transport_type = match body.get("transport_type") {
            None => Some(TransportType::StreamableHttp.name().to_owned()),
            Some(_) => validation.required_text("", &body, "transport_type"),
        };
        validation.finish()?;
        let transport_type = TransportType::parse(&transport_type.unwrap_or_default())?;
        if server_version.is_none() == server_alias.is_none() {
            return Err(Error::invalid("Exactly one of server_version or server_alias must be provided"));
        }
        let url = url.unwrap_or_default();
        check_url(&url)?;
        Ok(Self { server_version, server_alias, url, transport_type })
    }
}

/// Changes of an access endpoint (`UpdateMCPAccessEndpointRequest`). At most one of the version and
/// the alias is set.
#[derive(Clone, Debug)]
pub struct UpdatedAccessEndpoint {
    /// Version that the endpoint gives access to.
    pub server_version: Option<String>,
    /// Alias of the version that the endpoint gives access to.
    pub server_alias: Option<String>,
    /// The new URL. A null is refused by [`checked_url`](Self::checked_url), and therefore only
    /// after the endpoint has been found.
    pub url: Option<Option<String>>,
    /// Transport.
    pub transport_type: Option<TransportType>,
}

impl UpdatedAccessEndpoint {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let server_version = validation.optional_text("", &body, "server_version");
        let server_alias = validation.optional_text("", &body, "server_alias");
        let url = sent_text(&mut validation, &body, "url");
        let transport_type = validation.optional_text("", &body, "transport_type");
        validation.finish()?;
        let transport_type = transport_type.map(|name| TransportType::parse(&name)).transpose()?;
        if server_version.is_some() && server_alias.is_some() {
            return Err(Error::invalid("Cannot set both server_version and server_alias in a single update"));
        }
        Ok(Self { server_version, server_alias, url, transport_type })
    }

    /// Returns the new URL, if there is one.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the URL is null, empty or too long.
    pub fn checked_url(&self) -> Result<Option<&str>> {
        match &self.url {
            None => Ok(None),
            Some(None) => Err(Error::invalid("MCP access endpoint url cannot be None")),
            Some(Some(url)) => check_url(url).map(|()| Some(url.as_str())),
        }
    }
}

fn check_url(url: &str) -> Result<()> {
    if url.trim().is_empty() {
        return Err(Error::invalid(format!(
            "MCP access endpoint url cannot be empty or just whitespace: {}",
            python::repr(url)
        )));
    }
    at_most("url", MAX_URL_LENGTH, url)
}

/// An alias to set (`SetAliasRequest`).
#[derive(Clone, Debug)]
pub struct SetMcpAlias {
    /// Alias.
    pub alias: String,
    /// Version that the alias refers to. It may be any text, because the body does not show which
    /// versions exist.
    pub version: String,
}

impl SetMcpAlias {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let alias = validation.required_text("", &body, "alias");
        let version = validation.required_text("", &body, "version");
        validation.finish()?;
        let (alias, version) = (alias.unwrap_or_default(), version.unwrap_or_default());
        at_most("alias", MAX_ALIAS_LENGTH, &alias)?;
        Ok(Self { alias, version })
    }
}

/// A tag to set (`SetTagRequest`).
#[derive(Clone, Debug)]
pub struct SetMcpTag {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

impl SetMcpTag {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses the body.
    pub fn read(request: &Request) -> Result<Self> {
        let (body, mut validation) = (body(request)?, Validation::default());
        let key = validation.required_text("", &body, "key");
        let value = validation.required_text("", &body, "value");
        validation.finish()?;
        let (key, value) = (key.unwrap_or_default(), value.unwrap_or_default());
        at_most("key", MAX_TAG_KEY_LENGTH, &key)?;
        at_most("value", MAX_TAG_VALUE_LENGTH, &value)?;
        Ok(Self { key, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &str) -> Request {
        let content_type = Some("application/json".to_owned());
        Request { method: "POST".to_owned(), content_type, body: body.as_bytes().to_vec(), ..Request::default() }
    }

    fn version(body: &str) -> Result<NewMcpVersion> {
        NewMcpVersion::read(&request(body), "com.example/a1").map(|(_, version)| version)
    }

    #[test]
    fn mistakes_are_those_of_pydantic() {
        for (body, expected) in [
            ("", "Field required"),
            ("{}", "name: Field required"),
            ("[]", "Input should be a valid dictionary or object to extract fields from"),
            (
                r#"{"name": 5, "icons": [{"src": 5}], "description": 7}"#,
                "name: Input should be a valid string; description: Input should be a valid string; \
                 icons.0.src: Input should be a valid string",
            ),
            (r#"{"name": "a", "icons": 1}"#, "icons: Input should be a valid list"),
        ] {
            let message = NewMcpServer::read(&request(body)).unwrap_err().message;
            assert_eq!(message, format!("Invalid request: {expected}"), "{body}");
        }
        let message = version(
            r#"{"server_json": {"name": "com.example/a1", "version": "1.0.0"},
                "tools": [{"name": 1, "icons": [{}], "inputSchema": []}],
                "connect_options": {"a": {"hidden": "q"}, "b": 5, "c": {}}}"#,
        );
        assert_eq!(
            message.unwrap_err().message,
            "Invalid request: tools.0.name: Input should be a valid string; tools.0.inputSchema: Input should be a valid \
             dictionary; tools.0.icons.0.src: Field required; connect_options.a.hidden: Input should be a valid boolean, \
             unable to interpret input; connect_options.b: Input should be a dictionary or an instance of \
             ConnectOptionSettings"
        );
        for (body, expected) in [
            (
                r#"{"server_json": 5}"#,
                "server_json: Input should be a valid dictionary or object to extract fields from",
            ),
            (
                r#"{"server_json": {"server": {"name": 1}}}"#,
                "server_json.name: Field required; server_json.version: Field required",
            ),
            (
                r#"{"server_json": {"server": 5}}"#,
                "Value error, server_json.server: Input should be a valid dictionary",
            ),
        ] {
            assert_eq!(version(body).unwrap_err().message, format!("Invalid request: {expected}"));
        }
        let many = vec!["{\"name\": \"t\"}"; 1_001].join(",");
        let many = format!(r#"{{"server_json": {{"name": "com.example/a1", "version": "1.0.0"}}, "tools": [{many}]}}"#);
        assert_eq!(
            version(&many).unwrap_err().message,
            "Invalid request: tools: List should have at most 1000 items after validation, not 1001"
        );
    }

    #[test]
    fn a_server_json_is_kept_with_its_unknown_fields() {
        let sent = r#"{"server_json": {"server": {"name": "com.example/a1", "version": "1.0.0", "x": 12345678901234567890,
            "meta": {"a": 1.5}, "icons": [{"src": "https://example.com/i", "mimeType": " IMAGE/png", "sizes": null}],
            "packages": [{"registryType": "npm", "identifier": "i", "transport": null,
                "environmentVariables": [{"name": "E", "isRequired": "true"}]}]}}}"#;
        let read = version(sent).unwrap();
        assert_eq!(
            read.server_json.object.print(),
            r#"{"name": "com.example/a1", "version": "1.0.0", "x": 12345678901234567890, "icons": [{"src": "https://example.com/i", "mimeType": "image/png"}], "packages": [{"registryType": "npm", "identifier": "i", "transport": null, "environmentVariables": [{"name": "E", "isRequired": true}]}], "_meta": {"a": 1.5}}"#
        );
        assert_eq!(read.status, McpStatus::Draft);
        assert!(version(r#"{"server_json": {"name": "com.example/a1", "version": "1.0.0", "x": NaN}}"#).is_err());
    }

    #[test]
    fn fields_that_were_not_sent_are_told_from_nulls() {
        let read = |body: &str| UpdatedMcpServer::read(&request(body)).unwrap();
        let update = read(r#"{"description": null, "icons": []}"#);
        assert_eq!(update.description, Some(None));
        assert_eq!(update.display_name, None);
        assert_eq!(update.icons, Some(Some(Json::List(Vec::new()))));
        assert_eq!(read(r#"{"icons": null}"#).icons, Some(None));
        assert!(UpdatedMcpVersion::read(&request(r#"{"status": null}"#)).is_err());
    }
}

//! Request parameters of endpoints that have no protobuf message. They are parsed like in
//! `mlflow/server/auth`.

use mlflow_api::{Error, Request, Result, python};
use serde_json::{Map, Value};

/// The parameters of one request. They are in the body of a POST or PATCH request, and also of a
/// DELETE request if its content type is JSON. Otherwise, they are in the query string.
pub(crate) struct Parameters(Map<String, Value>);

impl Parameters {
    /// Reads the parameters. A body whose content type is not JSON has no parameters.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the content type is JSON and the body is not a JSON
    /// object.
    pub(crate) fn of(request: &Request) -> Result<Self> {
        let is_json = request.content_type.as_deref().is_some_and(is_json);
        let has_body = match request.method.as_str() {
            "GET" => false,
            "DELETE" => is_json,
            _ => true,
        };
        if has_body {
            return Ok(Self(if is_json { request.json_object()? } else { Map::new() }));
        }
        let mut all = Map::new();
        for (name, value) in &request.query {
            all.entry(name.clone()).or_insert_with(|| Value::String(value.clone()));
        }
        Ok(Self(all))
    }

    /// Returns an optional parameter. A parameter that is `null` is treated as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a required parameter.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the parameter is missing.
    pub(crate) fn required(&self, name: &str) -> Result<&Value> {
        self.0.get(name).ok_or_else(|| {
            Error::invalid(format!(
                "Missing value for required parameter '{name}'. See the API docs for more information about request parameters."
            ))
        })
    }

    /// Returns a required string. Numbers and booleans are converted to strings as Python does.
    pub(crate) fn text(&self, name: &str) -> Result<String> {
        match self.required(name)? {
            Value::String(text) => Ok(text.clone()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(Error::invalid(format!("Parameter '{name}' must be a string.")))
            }
            other => Ok(python::data(other)),
        }
    }

    /// Returns a required integer (`_coerce_int_param`).
    pub(crate) fn number(&self, name: &str) -> Result<IntegerParameter> {
        let value = self.required(name)?;
        let digits = match value {
            Value::Bool(value) => Some(u8::from(*value).to_string()),
            Value::String(text) => python::int(text),
            Value::Number(number) => number.as_i64().map(|number| number.to_string()).or_else(|| {
                number.as_f64().filter(|number| number.is_finite()).map(|number| format!("{:.0}", number.trunc()))
            }),
            _ => None,
        };
        let digits = digits.ok_or_else(|| {
            Error::invalid(format!("Parameter '{name}' must be an integer. Got: {}", python::data(value)))
        })?;
        Ok(IntegerParameter(digits))
    }
}

/// Checks whether Flask treats a content type as JSON.
pub(crate) fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// An integer of any size, in decimal. It is kept as text, because error messages quote it.
pub(crate) struct IntegerParameter(pub(crate) String);

impl IntegerParameter {
    /// Returns the number as an id, if it is in the range of ids.
    pub(crate) fn id(&self) -> Option<u32> {
        self.0.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(method: &str, content_type: &str, body: &str) -> Parameters {
        Parameters::of(&Request {
            method: method.to_owned(),
            content_type: Some(content_type.to_owned()),
            body: body.into(),
            query: vec![("role_id".to_owned(), "9".to_owned())],
            ..Request::default()
        })
        .unwrap()
    }

    #[test]
    fn parameters_are_where_mlflow_looks_for_them() {
        let number = |of: &Parameters| of.number("role_id").map(|number| number.0).map_err(|error| error.message);
        assert_eq!(number(&body("POST", "application/json", r#"{"role_id": 7}"#)), Ok("7".to_owned()));
        assert_eq!(
            number(&body("PATCH", "application/json; charset=utf-8", r#"{"role_id": "7"}"#)),
            Ok("7".to_owned())
        );
        assert_eq!(number(&body("DELETE", "text/plain", r#"{"role_id": 7}"#)), Ok("9".to_owned()));
        assert_eq!(number(&body("DELETE", "application/json", r#"{"role_id": 7}"#)), Ok("7".to_owned()));
        assert_eq!(number(&body("GET", "application/json", r#"{"role_id": 7}"#)), Ok("9".to_owned()));
        for nothing in ["", "null", "{}"] {
            assert!(
                number(&body("POST", "application/json", nothing))
                    .unwrap_err()
                    .starts_with("Missing value for required")
            );
        }
        for (text, message) in [("nothing", "is not JSON."), ("[]", "must be a JSON object.")] {
            let request = Request {
                method: "PATCH".to_owned(),
                content_type: Some("application/json".to_owned()),
                body: text.into(),
                ..Request::default()
            };
            let error = Parameters::of(&request).map(drop).unwrap_err();
            assert_eq!(error.message, format!("The request body {message}"));
        }
        let wrong = body("POST", "application/json", r#"{"role_id": "x"}"#);
        assert_eq!(number(&wrong), Err("Parameter 'role_id' must be an integer. Got: 'x'".to_owned()));
    }
}

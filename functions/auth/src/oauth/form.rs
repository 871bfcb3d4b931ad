//! Parameters of a request to an OAuth endpoint: a form in the body.

use mlflow_api::Request;

use crate::oauth::oauth_error::{OauthErrorCode, OauthResult};

/// The parameters of a request. Parameters without a value are treated as missing (RFC 6749,
/// section 3.2).
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns `invalid_request` if the body is not a form, or if a parameter is repeated.
    pub(crate) fn of(request: &Request) -> OauthResult<Self> {
        let media_type = request.content_type.as_deref().unwrap_or_default().split(';').next().unwrap_or_default();
        if !media_type.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let text = "The content type of the request must be application/x-www-form-urlencoded.";
            return Err(OauthErrorCode::InvalidRequest.because(text));
        }
        let body = std::str::from_utf8(&request.body)
            .map_err(|_| OauthErrorCode::InvalidRequest.because("The form is not valid UTF-8."))?;
        let mut fields = Request::parse_query(body);
        fields.retain(|(_, value)| !value.is_empty());
        for (index, (name, _)) in fields.iter().enumerate() {
            if fields.iter().skip(index + 1).any(|(other, _)| other == name) {
                return Err(OauthErrorCode::InvalidRequest.because(format!("The parameter {name} is repeated.")));
            }
        }
        Ok(Self(fields))
    }

    /// Returns an optional parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns a required parameter.
    ///
    /// # Errors
    /// Returns `invalid_request` if the parameter is missing.
    pub(crate) fn required(&self, name: &str) -> OauthResult<&str> {
        self.get(name)
            .ok_or_else(|| OauthErrorCode::InvalidRequest.because(format!("The parameter {name} is missing.")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::oauth_error::OauthFailure;

    fn form(content_type: &str, body: &str) -> Result<Form, String> {
        let request = Request { content_type: Some(content_type.to_owned()), body: body.into(), ..Request::default() };
        Form::of(&request).map_err(|failure| match failure {
            OauthFailure::Refused(error) => error.description,
            OauthFailure::Server(error) => panic!("{error}"),
        })
    }

    #[test]
    fn parameters_are_read_once_each() {
        const FORM: &str = "application/x-www-form-urlencoded";
        let read = form("Application/x-www-form-urlencoded; charset=utf-8", "a=b%20c&empty=&d=%2B").unwrap();
        assert_eq!((read.get("a"), read.get("empty"), read.get("d")), (Some("b c"), None, Some("+")));
        assert!(read.required("empty").is_err());
        for (content_type, body, said) in [
            ("application/json", "{}", "content type"),
            ("", "a=b", "content type"),
            (FORM, "a=b&c=d&a=b", "The parameter a is repeated."),
        ] {
            assert!(form(content_type, body).err().unwrap().contains(said), "{content_type} {body}");
        }
    }
}

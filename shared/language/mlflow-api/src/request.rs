//! An HTTP request that is parsed before its endpoint is determined.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::checks::{self, FieldChecks};
use crate::fields::Declared;
use crate::json::{self, Json, JsonError, MAX_DEPTH, MAX_VALUES, read_value};
use crate::message::{Field, Kind, Message, reject_both_names};
use crate::{Error, Result};

/// The parts of an HTTP request that are passed to an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method, in upper case.
    pub method: String,
    /// The variable parts of the path, decoded, with their names in the route.
    pub path: Vec<(String, String)>,
    /// The query arguments, decoded, in the order of the query.
    pub query: Vec<(String, String)>,
    /// The `Content-Type` header, if there is one.
    pub content_type: Option<String>,
    /// The headers from [`Request::HEADERS`] that the request has.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the body has been checked against a schema, as GraphQL's inputs are. In this case,
    /// MLflow skips the checks of [`messages!`](crate::messages), but rejects values of the wrong
    /// type.
    pub is_typed: bool,
}

impl Request {
    /// The headers that endpoints read, besides `Content-Type`.
    pub const HEADERS: [&str; 3] = ["content-encoding", "x-mlflow-experiment-id", "x-mlflow-run-id"];

    /// Returns the value of a header, which must be one of [`Request::HEADERS`].
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Decodes a query string. `+` is decoded to a space. Bytes that are not valid UTF-8 stay
    /// percent-encoded.
    #[must_use]
    pub fn parse_query(query: &str) -> Vec<(String, String)> {
        let decode = |text: &str| {
            let bytes: Vec<u8> = percent_decode_str(&text.replace('+', " ")).collect();
            bytes.utf8_chunks().fold(String::new(), |mut decoded, chunk| {
                decoded.push_str(chunk.valid());
                decoded.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
                decoded
            })
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (decode(key), decode(value)))
            .collect()
    }

    /// Returns a variable part of the path. Empty if the route has no part of this name.
    #[must_use]
    pub fn path_part(&self, name: &str) -> &str {
        self.path.iter().find(|(part, _)| part == name).map_or("", |(_, value)| value.as_str())
    }

    /// Returns the first query argument with this name.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns all query arguments with this name.
    #[must_use]
    pub fn arguments(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Reads the request as a message and runs the message's checks. [`messages!`](crate::messages)
    /// declares both.
    ///
    /// # Errors
    /// Returns MLflow's error if the request does not pass the checks, or contains an id that no
    /// entity can have.
    pub fn read<M: Declared>(&self) -> Result<M> {
        M::from_message(self.message_in_order(M::FIELDS, M::CHECKS, M::ARGUMENTS)?)
    }

    #[cfg(test)]
    fn message(&self, fields: &'static [Field], checks: &[FieldChecks]) -> Result<Message> {
        self.message_in_order(fields, checks, &[])
    }

    /// Reads the request as a message with these fields and runs the endpoint's checks.
    ///
    /// If a GET request has query arguments, its fields are read from them, in the order of
    /// `arguments`. The fields of any other request are read from the JSON body. A missing body is
    /// treated as an empty object.
    fn message_in_order(
        &self,
        fields: &'static [Field],
        checks: &[FieldChecks],
        arguments: &[&str],
    ) -> Result<Message> {
        let json = if self.method == "GET" && !self.query.is_empty() {
            Value::Object(self.arguments_as_json(fields, arguments)?)
        } else {
            self.json()?
        };
        reject_both_names(fields, &json)?;
        let object = match json {
            Value::Object(object) => object,
            // Python also looks up the fields in a list, and finds none, so a list is treated as an
            // empty object.
            Value::Array(_) => Map::new(),
            _ => return Err(not_an_object()),
        };
        let (message, fitted) = Message::parse(fields, &object);
        if self.is_typed {
            return if fitted {
                Ok(message)
            } else {
                Err(Error::invalid("The input does not fit the fields of its message."))
            };
        }
        checks::run(checks, &object, fitted)?;
        Ok(message)
    }

    /// Reads the request as a JSON object with arbitrary fields and runs the endpoint's checks. It
    /// is for endpoints that have no protobuf message (`_get_validated_flask_request_json` in
    /// MLflow's `handlers.py`). In a GET request, an argument that is declared as a list becomes a
    /// list even if it occurs only once.
    pub fn object(&self, checks: &[FieldChecks]) -> Result<Map<String, Value>> {
        let object = if self.method == "GET" && !self.query.is_empty() {
            self.arguments_as_object(checks)
        } else {
            match self.json()? {
                Value::Object(object) => object,
                _ => return Err(not_an_object()),
            }
        };
        checks::run(checks, &object, false)?;
        Ok(object)
    }

    /// Reads the body as a JSON object for GraphQL, regardless of the method. A missing body is an
    /// empty object.
    pub fn json_object(&self) -> Result<Map<String, Value>> {
        match self.json()? {
            Value::Object(object) => Ok(object),
            _ => Err(not_an_object()),
        }
    }

    /// Converts the query arguments to an object. An argument becomes a list if it occurs more than
    /// once, or if the checks declare it as a list.
    fn arguments_as_object(&self, checks: &[FieldChecks]) -> Map<String, Value> {
        let is_list = |name: &str| {
            let of_field = checks.iter().find(|(field, _)| *field == name);
            of_field.is_some_and(|(_, checks)| checks.iter().any(|check| matches!(check, checks::Check::List)))
        };
        let mut object = Map::new();
        for (name, value) in &self.query {
            let value = Value::from(value.as_str());
            match object.get_mut(name) {
                None if is_list(name) => drop(object.insert(name.clone(), Value::from(vec![value]))),
                None => drop(object.insert(name.clone(), value)),
                Some(Value::Array(values)) => values.push(value),
                Some(first) => *first = Value::from(vec![first.take(), value]),
            }
        }
        object
    }

    fn arguments_as_json(&self, fields: &'static [Field], order: &[&str]) -> Result<Map<String, Value>> {
        let mut object = Map::new();
        let place = |field: &&Field| order.iter().position(|name| *name == field.name).unwrap_or(order.len());
        let mut fields: Vec<_> = fields.iter().collect();
        fields.sort_by_key(place);
        for field in fields {
            let values = self.arguments(field.name);
            let Some(first) = values.first() else { continue };
            let value = if field.repeated {
                values.into_iter().map(Value::from).collect()
            } else if matches!(field.kind, Kind::Bool) {
                match first.to_lowercase().as_str() {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    _ => {
                        let message = format!("Invalid boolean value: {first}, must be 'true' or 'false'.");
                        return Err(Error::invalid(message));
                    }
                }
            } else {
                Value::from(*first)
            };
            object.insert(field.name.to_owned(), value);
        }
        Ok(object)
    }

    /// Parses the body as JSON, in any encoding that Python supports. An empty body is treated as
    /// an empty object.
    fn json(&self) -> Result<Value> {
        self.check_content_type()?;
        let body = json::to_utf8(&self.body).map_err(|_| no_json())?;
        if body.trim_ascii().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        // Python's parser accepts these words as numbers, so the body is not an object.
        if matches!(body.trim_ascii(), b"NaN" | b"Infinity" | b"-Infinity") {
            return Err(not_an_object());
        }
        let value = match read_body(&body)? {
            // Old clients encode their JSON twice.
            Value::String(text) => {
                drop(body);
                read_body(text.as_bytes()).map_err(|error| if error == no_json() { not_an_object() } else { error })?
            }
            value => value,
        };
        Ok(if value.is_null() { Value::Object(Map::new()) } else { value })
    }

    fn check_content_type(&self) -> Result<()> {
        if !matches!(self.method.as_str(), "POST" | "PUT") {
            return Ok(());
        }
        match &self.content_type {
            None => Err(Error::invalid("Bad Request. Content-Type header is missing.")),
            Some(header) if header.split(';').next() == Some("application/json") => Ok(()),
            Some(_) => Err(Error::invalid("Bad Request. Content-Type must be one of ['application/json'].")),
        }
    }
}

/// Parses a body. If the body is a JSON string, parses the JSON in the string.
fn read_body(json: &[u8]) -> Result<Value> {
    read_value(json).map_err(|unreadable| match unreadable {
        JsonError::NoJson if !is_json(json) => no_json(),
        JsonError::NoJson | JsonError::TooDeep => unreadable_json(),
        JsonError::TooMany => Error::invalid(format!("The request body has more than {MAX_VALUES} JSON values.")),
    })
}

/// Checks whether Python accepts the bytes as JSON, including numbers of any size and NaN.
fn is_json(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| Json::parse(text).is_some())
}

fn no_json() -> Error {
    Error::invalid("The request body is not JSON.")
}

fn unreadable_json() -> Error {
    Error::invalid(format!(
        "The request body cannot be read: it contains a number that is out of range or NaN, or more than {MAX_DEPTH} levels \
         of nested arrays and objects."
    ))
}

fn not_an_object() -> Error {
    Error::invalid("The request body must be a JSON object.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Check;
    use crate::message::{field, text, texts};

    const FIELDS: &[Field] = &[text("run_id"), texts("ids"), field("deep", Kind::Bool), field("step", Kind::Int64)];
    const CHECKS: &[FieldChecks] = &[("run_id", &[Check::Required, Check::Text]), ("step", &[Check::Integer])];

    fn post(body: &str) -> Result<Message> {
        let content_type = Some("application/json; charset=utf-8".to_owned());
        Request { method: "POST".to_owned(), content_type, body: body.as_bytes().to_vec(), ..Request::default() }
            .message(FIELDS, CHECKS)
    }

    fn get(query: &str) -> Result<Message> {
        Request { method: "GET".to_owned(), query: Request::parse_query(query), ..Request::default() }
            .message(FIELDS, CHECKS)
    }

    #[test]
    fn bodies_are_read_leniently() {
        assert_eq!(post(r#"{"run_id": "r"}"#).unwrap().string("run_id"), "r");
        assert_eq!(post(r#""{\"run_id\": \"r\"}""#).unwrap().string("run_id"), "r");
        let missing = "Missing value for required parameter 'run_id'. See the API docs for more information about request parameters.";
        for body in ["", " \n", "\u{feff}", "null", "{}", r#"{"run_id": ""}"#, r#"{"runId": "r"}"#] {
            assert_eq!(post(body).unwrap_err().message, missing, "{body}");
        }
        assert_eq!(post("[1]").unwrap_err().message, missing);
        for body in ["7", "true", "NaN", " -Infinity ", r#""text""#] {
            assert_eq!(post(body).unwrap_err().message, "The request body must be a JSON object.", "{body}");
        }
    }

    #[test]
    fn a_body_that_is_not_json_is_not_an_empty_one() {
        for body in ["{", "run_id=r", r#"{"run_id": "r"} x"#, "\u{feff}\u{feff}{}", "{\"run_id\": \"\u{1}\"}", "\0"] {
            assert_eq!(post(body).unwrap_err().message, "The request body is not JSON.", "{body}");
        }
    }

    #[test]
    fn bodies_are_read_in_other_encodings() {
        let request = |body: Vec<u8>| Request {
            method: "PUT".to_owned(),
            content_type: Some("application/json".to_owned()),
            body,
            ..Request::default()
        };
        let text = "\u{feff}{\"run_id\": \"größer\"}";
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for body in [text.as_bytes().to_vec(), wide.clone()] {
            assert_eq!(request(body).message(FIELDS, CHECKS).unwrap().string("run_id"), "größer");
        }
        let broken = request(wide[..wide.len() - 1].to_vec()).message(FIELDS, CHECKS).unwrap_err();
        assert_eq!(broken.message, "The request body is not JSON.");
    }

    #[test]
    fn a_body_has_a_bounded_number_of_values() {
        let list = |values: usize| format!("{{\"run_id\": \"r\", \"x\": [{}0]}}", "0,".repeat(values));
        // The limit counts the object, its two entries and the list.
        let most = MAX_VALUES - 5;
        assert_eq!(post(&list(most)).unwrap().string("run_id"), "r");
        let twice = Value::from(list(most + 1)).to_string();
        for body in [list(most + 1), twice] {
            assert_eq!(post(&body).unwrap_err().message, "The request body has more than 500000 JSON values.");
        }
        // Punctuation within a string is not counted.
        let text = format!("{{\"run_id\": \"{}\"}}", "[,".repeat(MAX_VALUES));
        assert!(post(&text).is_ok());
    }

    #[test]
    fn json_that_only_python_reads_is_refused_in_so_many_words() {
        let deep = format!("{{\"run_id\": {}1{}}}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        let deeper = format!("{{\"run_id\": {}", "[".repeat(100_000));
        for body in [r#"{"run_id": 1e999}"#, r#"{"run_id": NaN}"#, deep.as_str(), deeper.as_str()] {
            let message = post(body).unwrap_err().message;
            assert!(message.starts_with("The request body cannot be read: "), "{message}");
            assert!(message.ends_with("more than 1000 levels of nested arrays and objects."), "{message}");
        }
    }

    #[test]
    fn halves_of_surrogates_and_deep_nesting_are_read() {
        assert_eq!(post(r#"{"run_id": "a\ud83e", "x": "\ud83e\udd16"}"#).unwrap().string("run_id"), "a\u{fffd}");
        assert_eq!(post(r#""{\"run_id\": \"a\\ud83e\"}""#).unwrap().string("run_id"), "a\u{fffd}");
        let deep = format!("{{\"run_id\": \"r\", \"x\": {}1{}}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(post(&deep).unwrap().string("run_id"), "r");
    }

    #[test]
    fn types_are_checked_where_protobuf_could_not_read_the_request() {
        assert_eq!(
            post(r#"{"run_id": 12}"#).unwrap_err().message,
            "Invalid value 12 for parameter 'run_id' supplied:  Hint: Value was of type 'int'. \
             See the API docs for more information about request parameters."
        );
        // A value of the wrong type in a field without checks causes no error, but the fields after
        // it are lost.
        assert_eq!(post(r#"{"run_id": "r", "deep": 5, "step": 3}"#).unwrap().int("step"), 0);
    }

    #[test]
    fn content_types_are_checked() {
        let request = Request { method: "POST".to_owned(), ..Request::default() };
        let error = request.message(FIELDS, CHECKS).unwrap_err();
        assert_eq!(error.message, "Bad Request. Content-Type header is missing.");
        let request = Request { content_type: Some("text/plain".to_owned()), ..request };
        let error = request.message(FIELDS, CHECKS).unwrap_err();
        assert_eq!(error.message, "Bad Request. Content-Type must be one of ['application/json'].");
    }

    #[test]
    fn objects_are_read_without_a_message() {
        const CHECKS: &[FieldChecks] = &[("ids", &[Check::Required, Check::List]), ("name", &[Check::Text])];
        let get = |query: &str| {
            Request { method: "GET".to_owned(), query: Request::parse_query(query), ..Request::default() }
                .object(CHECKS)
        };
        let read = get("ids=1&name=a&other=x&other=y").unwrap();
        assert_eq!(Value::Object(read), serde_json::json!({"ids": ["1"], "name": "a", "other": ["x", "y"]}));
        assert!(get("name=a").unwrap_err().message.starts_with("Missing value for required parameter 'ids'."));
        // `object` always checks the types, even those of optional fields.
        let content_type = Some("application/json".to_owned());
        let put = |body: &str| {
            let body = body.as_bytes().to_vec();
            Request { method: "PUT".to_owned(), content_type: content_type.clone(), body, ..Request::default() }
                .object(CHECKS)
        };
        assert!(
            put(r#"{"ids": [], "name": 5}"#).unwrap_err().message.starts_with("Invalid value 5 for parameter 'name'")
        );
        assert!(put(r#"{"ids": [1.5]}"#).is_ok());
    }

    /// Checks that the work grows linearly with the length of the query, not quadratically: 8 times
    /// the arguments must take less than 32 times as long.
    #[test]
    fn many_arguments_are_read_in_linear_time() {
        let shortest = |arguments: usize| {
            let query: Vec<_> =
                (0..arguments).map(|position| format!("ids={position}&other{position}=x&y=z")).collect();
            let query = query.join("&");
            let read = || {
                let begin = std::time::Instant::now();
                let request =
                    Request { method: "GET".to_owned(), query: Request::parse_query(&query), ..Request::default() };
                assert_eq!(request.object(&[("ids", &[Check::List])]).unwrap().len(), arguments + 2);
                request.message(FIELDS, &[]).unwrap();
                begin.elapsed()
            };
            (0..5).map(|_| read()).min().unwrap()
        };
        // Other programs may slow down some of the rounds, but are unlikely to slow down all of
        // them.
        let mut rounds = (0..20).map(|_| (shortest(1_000), shortest(8_000)));
        assert!(rounds.any(|(few, many)| many < few * 32), "8,000 arguments take more than 32 times as long as 1,000");
    }

    #[test]
    fn arguments_are_read_by_their_snake_case_names() {
        let message = get("run_id=a+b%2F%C3%A9%ff&ids=1&ids=2&deep=False&runId=x").unwrap();
        assert_eq!(message.string("run_id"), "a b/é%FF");
        assert_eq!(message.texts("ids"), ["1", "2"]);
        assert_eq!(message.optional_bool("deep"), Some(false));
        assert_eq!(get("run_id=a&deep=1").unwrap_err().message, "Invalid boolean value: 1, must be 'true' or 'false'.");
    }
}

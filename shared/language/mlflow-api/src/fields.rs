//! The declaration of request messages. The macro [`messages!`](crate::messages) generates a
//! struct, the protobuf fields that it is parsed from, and its checks.

use crate::checks::FieldChecks;
use crate::message::{Content, Field, Kind, Message};
use crate::{ExperimentId, ModelId, RegisteredModelName, Result, RunId, TraceId};

/// A message with typed fields, as declared by [`messages!`](crate::messages).
pub trait Declared: Sized {
    /// The protobuf fields.
    const FIELDS: &'static [Field];
    /// MLflow's checks of the fields, in MLflow's order.
    const CHECKS: &'static [FieldChecks];
    /// The fields in protobuf's order, if it differs from the order of the checks. The query
    /// parameters of a GET request are parsed in this order, up to the first one that does not fit.
    const ARGUMENTS: &'static [&'static str] = &[];
    /// Whether only one field can be set.
    const IS_ONE_OF: bool = false;

    /// Creates the message from the parsed fields.
    ///
    /// # Errors
    /// Fails for an id that no entity can have.
    fn from_message(message: Message) -> Result<Self>;
}

/// Returns the name of a field in protobuf, given its name in Rust. If the name is a keyword in
/// Rust, it has the prefix `r#` there.
#[must_use]
pub const fn field_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Returns the kind of a field that contains a message.
#[must_use]
pub const fn message_kind<M: Declared>() -> Kind {
    if M::IS_ONE_OF { Kind::OneOf(M::FIELDS) } else { Kind::Message(M::FIELDS) }
}

/// The type that a single value of a field is converted to.
pub trait Scalar: Sized {
    /// The kind of the field.
    const KIND: Kind;

    /// Converts a value of the kind [`Scalar::KIND`].
    ///
    /// # Errors
    /// Fails for an id that no entity can have.
    fn of(content: Content) -> Result<Self>;
}

/// The type that a field is converted to. There are three kinds. A single value has protobuf's
/// default if the field was not sent. An `Option` is `None` in that case. A `Vec` contains the
/// elements of a list.
pub trait FieldValue: Sized {
    /// The kind of the field.
    const KIND: Kind;
    /// Whether the field is a list.
    const REPEATED: bool = false;

    /// Converts the content of the field, which is `None` if the field was not sent.
    ///
    /// # Errors
    /// Fails for an id that no entity can have.
    fn of(content: Option<Content>) -> Result<Self>;
}

impl<T: Scalar> FieldValue for Option<T> {
    const KIND: Kind = T::KIND;

    fn of(content: Option<Content>) -> Result<Self> {
        content.map(T::of).transpose()
    }
}

impl<T: Scalar> FieldValue for Vec<T> {
    const KIND: Kind = T::KIND;
    const REPEATED: bool = true;

    fn of(content: Option<Content>) -> Result<Self> {
        match content {
            Some(Content::List(list)) => list.into_iter().map(T::of).collect(),
            _ => Ok(Self::new()),
        }
    }
}

/// A list field that distinguishes between an empty list and a list that was not sent.
impl<T: Scalar> FieldValue for Option<Vec<T>> {
    const KIND: Kind = T::KIND;
    const REPEATED: bool = true;

    fn of(content: Option<Content>) -> Result<Self> {
        content.map(|content| Vec::of(Some(content))).transpose()
    }
}

/// Implements the traits for types of single values. A field that was not sent has the default
/// value of its type.
macro_rules! scalars {
    ($($type:ty: $kind:expr, $pattern:pat => $value:expr;)+) => {$(
        impl Scalar for $type {
            const KIND: Kind = $kind;

            fn of(content: Content) -> Result<Self> {
                Ok(match content {
                    $pattern => $value,
                    _ => Self::default(),
                })
            }
        }

        impl FieldValue for $type {
            const KIND: Kind = $kind;

            fn of(content: Option<Content>) -> Result<Self> {
                content.map_or_else(|| Ok(Self::default()), <Self as Scalar>::of)
            }
        }
    )+};
}

scalars! {
    String: Kind::Text, Content::Text(text) => text;
    i64: Kind::Int64, Content::Int(number) => number;
    i32: Kind::Int32, Content::Int(number) => number.try_into().unwrap_or_default();
    f64: Kind::Double, Content::Double(number) => number;
    bool: Kind::Bool, Content::Bool(value) => value;
}

/// Implements the traits for types of ids. A field that was not sent is parsed as the empty text.
macro_rules! ids {
    ($($type:ty: $parse:expr;)+) => {$(
        impl Scalar for $type {
            const KIND: Kind = Kind::Text;

            fn of(content: Content) -> Result<Self> {
                let text = <String as Scalar>::of(content)?;
                let parse: fn(&str) -> Result<Self> = $parse;
                parse(&text)
            }
        }

        impl FieldValue for $type {
            const KIND: Kind = Kind::Text;

            fn of(content: Option<Content>) -> Result<Self> {
                <Self as Scalar>::of(content.unwrap_or_else(|| Content::Text(String::new())))
            }
        }
    )+};
}

ids! {
    ExperimentId: ExperimentId::parse;
    RunId: RunId::named;
    ModelId: ModelId::named;
    RegisteredModelName: |text| Ok(RegisteredModelName::named(text));
    TraceId: TraceId::named;
}

/// Declares messages: their fields in the order of MLflow's checks, each with its type and its
/// checks.
///
/// The type determines what protobuf expects ([`FieldValue`]). It is `String`, `i64`, `i32`, `f64`,
/// `bool`, an enum, an id or another message. Each of these may be wrapped in an `Option`, which is
/// `None` if the field was not sent, or in a `Vec` for a list.
///
/// ```
/// mlflow_api::messages! {
///     /// A tag.
///     Tag {
///         key: String,
///         value: String,
///     }
///     /// The request message of `things/set-tags`.
///     SetTags {
///         thing_id: String [Required, Text],
///         tags: Vec<Tag> [List],
///         step: Option<i64>,
///     }
/// }
/// # let json = serde_json::json!({"thing_id": "t", "tags": [{"key": "a"}]});
/// # let (read, _) = mlflow_api::message::Message::parse(<SetTags as mlflow_api::fields::Declared>::FIELDS, json.as_object().unwrap());
/// # let message = <SetTags as mlflow_api::fields::Declared>::from_message(read).unwrap();
/// # assert_eq!((message.thing_id.as_str(), message.tags[0].key.as_str(), message.step), ("t", "a", None));
/// ```
#[macro_export]
macro_rules! messages {
    ($(
        $(#[$about:meta])+
        $name:ident { $(
            $(#[$field_about:meta])*
            $field:ident : $type:ty $([ $($check:expr),+ $(,)? ])?
        ),* $(,)? } $( arguments [ $($argument:ident),+ $(,)? ] )? $( => $one_of:ident )?
    )+) => {$(
        $(#[$about])+
        #[derive(Clone, Debug, PartialEq)]
        #[allow(unreachable_pub, reason = "a module may keep its messages to itself")]
        pub struct $name { $(
            #[doc = concat!("`", stringify!($field), "`")]
            $(#[$field_about])*
            pub $field: $type,
        )* }

        impl $crate::fields::Declared for $name {
            const FIELDS: &'static [$crate::message::Field] = &[$($crate::message::Field {
                name: $crate::fields::field_name(stringify!($field)),
                kind: <$type as $crate::fields::FieldValue>::KIND,
                repeated: <$type as $crate::fields::FieldValue>::REPEATED,
            }),*];
            const CHECKS: &'static [$crate::checks::FieldChecks] = {
                #[allow(unused_imports, reason = "a message may need none")]
                use $crate::checks::Check::*;
                &[$($(($crate::fields::field_name(stringify!($field)), &[$($check),+]),)?)*]
            };

            $(const ARGUMENTS: &'static [&'static str] = &[$(stringify!($argument)),+];)?
            $(const IS_ONE_OF: bool = {
                let $one_of = true;
                $one_of
            };)?

            #[allow(unused_mut, unused_variables, reason = "a message may have no fields")]
            fn from_message(mut message: $crate::message::Message) -> $crate::Result<Self> {
                Ok(Self { $($field: $crate::fields::FieldValue::of(message.take($crate::fields::field_name(stringify!($field))))?,)* })
            }
        }

        impl $crate::fields::Scalar for $name {
            const KIND: $crate::message::Kind = $crate::fields::message_kind::<Self>();

            fn of(content: $crate::message::Content) -> $crate::Result<Self> {
                let message = match content {
                    $crate::message::Content::Message(message) => message,
                    _ => $crate::message::Message::default(),
                };
                <Self as $crate::fields::Declared>::from_message(message)
            }
        }
    )+};
}

/// Implements the type of a field for an enum of protobuf, given the names, the numbers and their
/// variants.
#[macro_export]
macro_rules! enum_field {
    ($type:ty { $($name:literal = $number:literal => $variant:expr),+ $(,)? }) => {
        impl $crate::fields::Scalar for $type {
            const KIND: $crate::message::Kind = $crate::message::Kind::Enum(&[$(($name, $number)),+]);

            fn of(content: $crate::message::Content) -> $crate::Result<Self> {
                match content {
                    $($crate::message::Content::Int($number) => Ok($variant),)+
                    // The parser accepts no other numbers, so this indicates a bug.
                    other => Err($crate::Error::internal(format!("{other:?} is not of the enum"))),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Request;

    /// A color.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[allow(unreachable_pub, reason = "the type of a public field")]
    pub enum Color {
        /// Red.
        Red,
        /// Blue.
        Blue,
    }
    enum_field!(Color { "RED" = 1 => Color::Red, "BLUE" = 3 => Color::Blue });

    messages! {
        /// A tag.
        Tag { key: String, value: String }
        /// A message of the test.
        Sample {
            experiment_id: ExperimentId [Required, Text],
            step: i64 [Integer],
            small: Option<i32>,
            color: Option<Color>,
            tags: Vec<Tag> [List],
            names: Option<Vec<String>>,
            nested: Option<Tag>,
        }
        /// One of two.
        Either { left: Option<String>, right: Option<String> } => one_of
        /// A choice, and a field after it.
        Choice { either: Option<Either>, after: String }
        /// No fields.
        Nothing {}
    }

    fn read(json: &serde_json::Value) -> Result<Sample> {
        let content_type = Some("application/json".to_owned());
        Request { method: "POST".to_owned(), content_type, body: json.to_string().into_bytes(), ..Request::default() }
            .read()
    }

    #[test]
    fn fields_are_read_into_their_types() {
        let sample = read(&json!({"experiment_id": "07", "step": "3", "small": 4, "color": "BLUE",
            "tags": [{"key": "k"}], "names": [], "nested": {"value": "v"}}))
        .unwrap();
        assert_eq!(sample.experiment_id.number(), 7);
        assert_eq!((sample.step, sample.small, sample.color), (3, Some(4), Some(Color::Blue)));
        assert_eq!(sample.tags, [Tag { key: "k".to_owned(), value: String::new() }]);
        assert_eq!((sample.names, sample.nested.unwrap().value.as_str()), (Some(Vec::new()), "v"));
    }

    #[test]
    fn a_second_choice_does_not_fit() {
        let choice = |json: serde_json::Value| {
            let (message, fitted) = Message::parse(Choice::FIELDS, json.as_object().unwrap());
            (Choice::from_message(message).unwrap(), fitted)
        };
        let left = Either { left: Some("l".to_owned()), right: None };
        let (read, fitted) = choice(json!({"either": {"left": "l", "right": null}, "after": "a"}));
        assert_eq!((read.either, read.after.as_str(), fitted), (Some(left.clone()), "a", true));
        let (read, fitted) = choice(json!({"either": {"left": "l", "right": "r"}, "after": "a"}));
        assert_eq!((read.either, read.after.as_str(), fitted), (Some(left), "", false));
    }

    #[test]
    fn what_was_not_sent_is_protobufs_default_or_none() {
        let sample = read(&json!({"experiment_id": "1"})).unwrap();
        assert_eq!((sample.step, sample.small, sample.color), (0, None, None));
        assert_eq!((sample.tags.len(), sample.names, sample.nested), (0, None, None));
        assert_eq!(Nothing::from_message(Message::default()).unwrap(), Nothing {});
    }

    #[test]
    fn checks_come_in_the_order_of_the_declaration_and_ids_after_them() {
        let message = |json| read(&json).unwrap_err().message;
        assert!(message(json!({"step": "x"})).starts_with("Missing value for required parameter 'experiment_id'."));
        assert!(message(json!({"experiment_id": "x", "step": "x"})).contains("for parameter 'step'"));
        assert!(message(json!({"experiment_id": "x", "step": 1})).starts_with("Invalid experiment ID 'x'."));
    }
}

//! The types of attributes: how DynamoDB stores values, and the Rust types that they are read as.

pub use model::{DatasetRecordId, ExperimentId, LifecycleStage, ModelStage, RunStatus, ScorerId, TraceState};

use crate::Segment;
pub use crate::WideDigest;

/// The type of an attribute, for the table reference and for checks of items.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// DynamoDB's type code in an item's JSON.
    pub code: &'static str,
    /// Checks whether a string or a number is a value of this type. Always true for other types.
    pub reads: fn(&str) -> bool,
    /// The type of the values of a map or a set, if it is known.
    pub values: Option<&'static Self>,
}

impl Kind {
    /// Returns the name of the type in the table reference.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.code {
            "N" => "number",
            "B" => "binary",
            "BS" => "binary set",
            "M" => "map",
            "L" => "list",
            _ => "string",
        }
    }
}

/// The type of an attribute, as declarations of rows and attributes name it.
pub trait Typed {
    /// Description of the type, for checks.
    const KIND: Kind;
}

/// A type that is stored as a string or a number.
pub trait Scalar: Typed {
    /// The type that values are read as.
    type Value<'a>;

    /// Parses a string, or the digits of a number. Returns `None` if it is not a value of this
    /// type.
    fn parsed(text: &str) -> Option<Self::Value<'_>>;
}

/// A type that is stored as a set of byte strings.
pub trait Set: Typed {}

/// A type that is stored as a map.
pub trait Mapping: Typed {}

impl Typed for Text {
    const KIND: Kind = Kind { code: "S", reads: |_| true, values: None };
}

impl Scalar for Text {
    type Value<'a> = &'a str;

    fn parsed(text: &str) -> Option<&str> {
        Some(text)
    }
}

macro_rules! scalars {
    ($($name:ty: $code:literal as $value:ty = $read:expr;)+) => {
        $(
            impl Typed for $name {
                const KIND: Kind = Kind { code: $code, reads: |text| <Self as Scalar>::parsed(text).is_some(), values: None };
            }

            impl Scalar for $name {
                type Value<'a> = $value;

                fn parsed(text: &str) -> Option<$value> {
                    ($read)(text)
                }
            }
        )+
    };
}

scalars! {
    LifecycleStage: "S" as Self = Self::from_name;
    RunStatus: "S" as Self = Self::from_name;
    ModelStage: "S" as Self = Self::from_name;
    TraceState: "S" as Self = Self::from_name;
    ExperimentId: "S" as Self = |text: &str| text.parse().ok().and_then(Self::from_number);
    DatasetRecordId: "S" as Self = Self::parse;
    ScorerId: "S" as Self = Self::parse;
    WideDigest: "S" as Self = Self::read;
    Decimal: "S" as f64 = |text: &str| text.parse().ok();
    Number: "N" as i64 = |digits: &str| digits.parse().ok();
    Count: "N" as u32 = |digits: &str| digits.parse().ok();
    ModelStatusNumber: "N" as i64 = |digits: &str| digits.parse().ok().filter(|number| (0..4).contains(number));
}

macro_rules! others {
    ($($(#[doc = $doc:literal])+ $name:ident: $code:literal $(of $values:ty)? $(, $trait:ident)?;)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug)]
            pub enum $name {}

            impl Typed for $name {
                const KIND: Kind = Kind { code: $code, reads: |_| true, values: others!(@ $($values)?) };
            }

            $(impl $trait for $name {})?
        )+
    };
    (@) => { None };
    (@ $values:ty) => { Some(&<$values as Typed>::KIND) };
}

/// A string.
pub type Text = str;
/// A decimal number, stored as a string. No row stores one as a number.
pub type Decimal = f64;
/// A 64-bit integer.
pub type Number = i64;
/// A 32-bit unsigned integer.
pub type Count = u32;

/// The status of a logged model, as MLflow's number.
#[derive(Debug)]
pub enum ModelStatusNumber {}

others! {
    /// Bytes.
    Bytes: "B";
    /// A set of byte strings.
    ByteStrings: "BS", Set;
    /// A set of byte strings that are UTF-8 texts.
    TextSet: "BS" of Text, Set;
    /// A map of strings.
    Texts: "M" of Text, Mapping;
    /// A map of 64-bit integers.
    Numbers: "M" of Number, Mapping;
    /// A map of 32-bit unsigned integers.
    Counts: "M" of Count, Mapping;
    /// A list.
    List: "L";
}

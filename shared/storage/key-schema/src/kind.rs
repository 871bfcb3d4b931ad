//! The types of attributes: how DynamoDB stores them, and what Rust reads them as.

pub use model::{DatasetRecordId, ExperimentId, LifecycleStage, ModelStage, RunStatus, ScorerId, TraceState};

use crate::Segment;
pub use crate::WideDigest;

/// The type of an attribute, for the table reference and for checks of items.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// DynamoDB's name of it in an item's JSON.
    pub code: &'static str,
    /// Whether a string or a number can be of this type. Of other types, it says nothing.
    pub reads: fn(&str) -> bool,
    /// The type of the values of a map or a set, where that is known.
    pub values: Option<&'static Self>,
}

impl Kind {
    /// Its name in the table reference.
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

/// The type of an attribute. Rows and attributes name it.
pub trait Typed {
    /// How to check it.
    const KIND: Kind;
}

/// A type that is stored as a string or a number.
pub trait Scalar: Typed {
    /// The value in Rust.
    type Value<'a>;

    /// The value of a string or of the digits of a number; `None` if it is not of this type.
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
/// A decimal number, as a string: no row has one as a number.
pub type Decimal = f64;
/// A whole number.
pub type Number = i64;
/// A whole number of 32 bits that is not negative.
pub type Count = u32;

/// The status of a logged model, by MLflow's number.
#[derive(Debug)]
pub enum ModelStatusNumber {}

others! {
    /// Bytes.
    Bytes: "B";
    /// A set of byte strings.
    ByteStrings: "BS", Set;
    /// A set of byte strings that are texts.
    TextSet: "BS" of Text, Set;
    /// A map of strings.
    Texts: "M" of Text, Mapping;
    /// A map of whole numbers.
    Numbers: "M" of Number, Mapping;
    /// A map of whole numbers of 32 bits that are not negative.
    Counts: "M" of Count, Mapping;
    /// A list.
    List: "L";
}

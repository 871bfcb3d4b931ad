//! Macros that declare rows and index keys by patterns: literals with typed segments between them.

/// Declares the rows of a table. Each becomes a type with
///
/// - `key`, which builds the row's key, and `parse`, which reads it back;
/// - `partition`, the range of all rows in its partition;
/// - `all`, the range of the rows of this type in a partition, with a method for each segment that
///   narrows it: `RankByMetric::all(&experiment).metric(&metric).value(&value)`.
///
/// The attributes of its items are in braces, followed by groups that several rows share:
/// `{ NAME: Text required "its name", ..TAGGED }`. Every item of the row has its `required`
/// attributes.
///
/// `ROWS` has the descriptions of all rows.
macro_rules! rows {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $( $pk:literal $(< $partition:ident : $partition_type:ty >)? )+ / $( $literal:literal $(< $field:ident : $type:ty >)? )+
            $({ $( $attribute:ident : $kind:ident $($required:ident)? $about:literal ),* $(,)? $( ..$group:ident ),* })? ;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name {
                $($(
                    #[doc = concat!("`", stringify!($partition), "` of the partition key.")]
                    pub $partition: $partition_type,
                )?)+
                $($(
                    #[doc = concat!("`", stringify!($field), "` of the sort key.")]
                    pub $field: $type,
                )?)+
            }

            impl $name {
                /// The description of the row, for the table reference.
                pub const DESCRIPTION: RowDescription = RowDescription {
                    name: stringify!($name),
                    pk: concat!($($pk $(, "<", stringify!($partition), ">")? ,)+),
                    sk: concat!($($literal $(, "<", stringify!($field), ">")? ,)+),
                    purpose: concat!($($doc),+),
                    attributes: &[$(attributes! { $($attribute: $kind $($required)? $about),* }, $($group),*)?],
                    has_form: |key| Self::has_form(key).is_some(),
                    reads: |key| Self::parse(key).is_some(),
                };

                /// Builds the row's key.
                #[must_use]
                pub fn key($($($partition: &$partition_type,)?)+ $($($field: &$type,)?)+) -> Key {
                    Key { pk: written!($($pk $(<$partition>)?)+), sk: written!($($literal $(<$field>)?)+) }
                }

                /// Parses a key of this row. Returns `None` for a key of another row.
                #[must_use]
                pub fn parse(key: &Key) -> Option<Self> {
                    read!(key.pk, $($pk $(<$partition: $partition_type>)?)+);
                    read!(key.sk, $($literal $(<$field: $type>)?)+);
                    Some(Self { $($($partition,)?)+ $($($field,)?)+ })
                }

                fn has_form(key: &Key) -> Option<()> {
                    has_form!(key.pk, $($pk $(<$partition>)?)+);
                    has_form!(key.sk, $($literal $(<$field>)?)+);
                    Some(())
                }

                /// Returns the range of the whole partition, including rows of other types.
                #[must_use]
                pub fn partition($($($partition: &$partition_type,)?)+) -> KeyRange {
                    KeyRange::new(None, written!($($pk $(<$partition>)?)+), "")
                }

                /// Returns the range of the rows of this type in a partition. The methods of
                /// [`Prefix`] narrow it one segment at a time.
                #[must_use]
                pub fn all($($($partition: &$partition_type,)?)+) -> Prefix<Self, 0> {
                    Prefix::new(None, written!($($pk $(<$partition>)?)+), first!($($literal)+))
                }
            }

            prefixes!($name, 0; $($literal $(<$field: $type>)?)+);
        )+

        /// The descriptions of all rows.
        pub const ROWS: &[RowDescription] = &[$($name::DESCRIPTION),+];
    };
}

/// Declares the keys of the secondary indexes in the syntax of rows:
/// `index of the rows that carry it = partition key / sort key`. The partition of a local index is
/// that of the row. Each becomes a type with `key`, `all` and, as an
/// [`IndexEntry`](crate::IndexEntry), `parse`.
macro_rules! index_keys {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident : $scope:ident $index:ident of $($row:ident),+ = $( $pk:literal $(< $partition:ident : $partition_type:ty >)? )+ / $( $literal:literal $(< $field:ident : $type:ty >)? )+ ;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name {
                $($(
                    #[doc = concat!("`", stringify!($field), "` of the sort key.")]
                    pub $field: $type,
                )?)+
            }

            impl IndexEntry for $name {
                const INDEX: &'static Index = &$index;

                fn parse(sort_key: &str) -> Option<Self> {
                    read!(sort_key, $($literal $(<$field: $type>)?)+);
                    Some(Self { $($($field,)?)+ })
                }
            }

            index_key!($scope $name = $($pk $(<$partition: $partition_type>)?)+ / $($literal $(<$field: $type>)?)+);

            impl $name {
                /// Returns the range of the entries of this type in a partition. The methods of
                /// [`Prefix`] narrow it one segment at a time.
                #[must_use]
                pub fn all($($($partition: &$partition_type,)?)+) -> Prefix<Self, 0> {
                    Prefix::new(Some(Self::INDEX), written!($($pk $(<$partition>)?)+), first!($($literal)+))
                }
            }

            prefixes!($name, 0; $($literal $(<$field: $type>)?)+);
        )+

        /// The descriptions of all index keys.
        pub const INDEX_KEYS: &[IndexDescription] = &[$(IndexDescription {
            index: &$index,
            rows: &[$($crate::rows::$row::DESCRIPTION),+],
            partition: concat!($($pk $(, "<", stringify!($partition), ">")? ,)+),
            sort: concat!($($literal $(, "<", stringify!($field), ">")? ,)+),
            purpose: concat!($($doc),+),
        }),+];
    };
}

/// Defines `key` of an index entry: a local index has only a sort key, a global index also a
/// partition key.
macro_rules! index_key {
    (local $name:ident = $( $pk:literal $(< $partition:ident : $partition_type:ty >)? )+ / $( $literal:literal $(< $field:ident : $type:ty >)? )+) => {
        impl $name {
            /// Returns the attribute that puts an item into the index.
            #[must_use]
            pub fn key($($($field: &$type,)?)+) -> IndexKey {
                IndexKey(vec![(Self::INDEX.sort, written!($($literal $(<$field>)?)+))])
            }
        }
    };
    (global $name:ident = $( $pk:literal $(< $partition:ident : $partition_type:ty >)? )+ / $( $literal:literal $(< $field:ident : $type:ty >)? )+) => {
        impl $name {
            /// Returns the attributes that put an item into the index.
            #[must_use]
            pub fn key($($($partition: &$partition_type,)?)+ $($($field: &$type,)?)+) -> IndexKey {
                IndexKey(vec![
                    (Self::INDEX.partition, written!($($pk $(<$partition>)?)+)),
                    (Self::INDEX.sort, written!($($literal $(<$field>)?)+)),
                ])
            }
        }
    };
}

/// Builds a key as a string.
macro_rules! written {
    ($( $literal:literal $(< $field:ident >)? )+) => {{
        let mut key = String::new();
        $(
            key.push_str($literal);
            $(Segment::write($field, &mut key);)?
        )+
        key
    }};
}

/// Parses the segments of a key into variables. Returns `None` from the enclosing function if the
/// key does not match the pattern.
macro_rules! read {
    ($key:expr, $( $literal:literal $(< $field:ident : $type:ty >)? )+) => {
        let rest: &str = &$key;
        $(
            let rest = rest.strip_prefix($literal)?;
            $(
                let (text, rest) = rest.split_at(rest.find('#').unwrap_or(rest.len()));
                let $field = <$type as Segment>::read(text)?;
            )?
        )+
        if !rest.is_empty() {
            return None;
        }
    };
}

/// Checks whether a key has the form of a pattern. Returns `None` from the enclosing function if it
/// does not.
macro_rules! has_form {
    ($key:expr, $( $literal:literal $(< $field:ident >)? )+) => {
        let rest: &str = &$key;
        $(
            let rest = rest.strip_prefix($literal)?;
            $(
                let rest = &rest[rest.find('#').unwrap_or(rest.len())..];
                let _: &str = stringify!($field);
            )?
        )+
        if !rest.is_empty() {
            return None;
        }
    };
}

/// Builds a list of attribute descriptions from names, types and texts.
macro_rules! attributes {
    ($( $attribute:ident : $kind:ident $($required:ident)? $about:literal ),* $(,)?) => {
        &[$($crate::attributes::AttributeDescription::new::<$crate::kind::$kind>(
            $crate::attributes::$attribute,
            is_required!($($required)?),
            $about,
        )),*]
    };
}

/// Expands to `true` if the keyword `required` is present, and to `false` otherwise.
macro_rules! is_required {
    () => {
        false
    };
    (required) => {
        true
    };
}

macro_rules! first {
    ($first:literal $($other:literal)*) => {
        $first
    };
}

/// Defines a method of [`Prefix`](crate::Prefix) for each segment except the last, which would
/// complete the key.
macro_rules! prefixes {
    ($name:ident, $given:expr; $literal:literal $(<$field:ident : $type:ty>)?) => {};
    ($name:ident, $given:expr; $literal:literal <$field:ident : $type:ty> $next:literal $($rest:tt)*) => {
        impl Prefix<$name, { $given }> {
            #[doc = concat!("Restricts the range to this `", stringify!($field), "`.")]
            #[must_use]
            pub fn $field(self, $field: &$type) -> Prefix<$name, { $given + 1 }> {
                self.then($field, $next)
            }
        }

        prefixes!($name, $given + 1; $next $($rest)*);
    };
}

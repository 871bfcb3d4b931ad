//! Declares rows and index keys by their pattern: literals, and typed segments between them.

/// Declares the rows of the table. Each becomes a type with `key`, `parse` and `DESCRIPTION`; `ROWS` lists them all.
macro_rules! rows {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $pk:literal $(< $partition:ident : $partition_type:ty >)? / $( $literal:literal $(< $field:ident : $type:ty >)? )+ ;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name {
                $(
                    #[doc = concat!("`", stringify!($partition), "` of the partition key.")]
                    pub $partition: $partition_type,
                )?
                $($(
                    #[doc = concat!("`", stringify!($field), "` of the sort key.")]
                    pub $field: $type,
                )?)+
            }

            impl $name {
                /// What the row is, for the table reference.
                pub const DESCRIPTION: RowDescription = RowDescription {
                    name: stringify!($name),
                    pk: concat!($pk $(, "<", stringify!($partition), ">")?),
                    sk: concat!($($literal $(, "<", stringify!($field), ">")? ,)+),
                    purpose: concat!($($doc),+),
                };

                /// Builds the row's key.
                #[must_use]
                pub fn key($($partition: &$partition_type,)? $($($field: &$type,)?)+) -> Key {
                    #[allow(unused_mut, reason = "a partition may be a literal")]
                    let mut pk = String::from($pk);
                    $(Segment::write($partition, &mut pk);)?
                    let mut sk = String::new();
                    $(
                        sk.push_str($literal);
                        $(Segment::write($field, &mut sk);)?
                    )+
                    Key { pk, sk }
                }

                /// Reads a key of this row back, or `None` for a key of any other.
                #[must_use]
                pub fn parse(key: &Key) -> Option<Self> {
                    #[allow(unused_variables, reason = "a partition may be a literal")]
                    let partition_rest = key.pk.strip_prefix($pk)?;
                    $(let $partition = <$partition_type as Segment>::read(partition_rest)?;)?
                    let rest = key.sk.as_str();
                    $(
                        let rest = rest.strip_prefix($literal)?;
                        $(let (text, rest) = rest.split_at(rest.find('#').unwrap_or(rest.len()));
                        let $field = <$type as Segment>::read(text)?;)?
                    )+
                    rest.is_empty().then_some(Self { $($partition,)? $($($field,)?)+ })
                }
            }
        )+

        /// Every row of the table.
        pub const ROWS: &[RowDescription] = &[$($name::DESCRIPTION),+];
    };
}

/// Declares the sort (or partition) keys of the secondary indexes. Each becomes a function that builds the attribute's value.
macro_rules! index_keys {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident : $attribute:literal of $entity:literal = $( $literal:literal $(< $field:ident : $type:ty >)? )+ ;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[must_use]
            pub fn $name($($($field: &$type,)?)+) -> String {
                let mut value = String::new();
                $(
                    value.push_str($literal);
                    $(Segment::write($field, &mut value);)?
                )+
                value
            }
        )+

        /// Every index key of the table.
        pub const INDEX_KEYS: &[IndexDescription] = &[$(IndexDescription {
            attribute: $attribute,
            entity: $entity,
            pattern: concat!($($literal $(, "<", stringify!($field), ">")? ,)+),
            purpose: concat!($($doc),+),
        }),+];
    };
}

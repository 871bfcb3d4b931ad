//! Ids of webhooks and of their events: ULIDs, which sort by creation time.

use std::fmt;

use ulid::Ulid;

/// Length of a ULID as text.
const ULID_LENGTH: usize = 26;

/// Defines an id that is a ULID: 48 bits of time in ms, and 80 random bits.
macro_rules! ulid_id {
    ($(#[doc = $doc:literal])+ $name:ident) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// Creates an id for an entity that is created at `time_ms`. Only the last 80 bits of
            /// `random` are used.
            #[must_use]
            pub fn new(time_ms: i64, random: u128) -> Self {
                Self(Ulid::from_parts(u64::try_from(time_ms).unwrap_or_default(), random))
            }

            /// Parses an id. Returns `None` for a text that this server cannot have created as an id.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let id = Some(text).filter(|text| text.len() == ULID_LENGTH).and_then(|text| text.parse().ok())?;
                Some(Self(id)).filter(|id| id.to_string() == text)
            }

            /// Returns the creation time, in ms.
            #[must_use]
            pub fn created(&self) -> i64 {
                i64::try_from(self.0.timestamp_ms()).unwrap_or_default()
            }

            /// Returns the 128 bits of the id.
            #[must_use]
            pub fn bits(&self) -> u128 {
                self.0.into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

ulid_id! {
    /// The id of a webhook. Newer webhooks have greater ids.
    WebhookId
}
ulid_id! {
    /// The id of an event that webhooks receive.
    WebhookEventId
}

#[cfg(test)]
mod tests {
    use super::WebhookId;

    #[test]
    fn only_ids_of_this_form_are_parsed() {
        let id = WebhookId::new(1_700_000_000_000, 7);
        assert_eq!(WebhookId::parse(&id.to_string()), Some(id));
        assert_eq!(id.created(), 1_700_000_000_000);
        let lower = id.to_string().to_lowercase();
        for text in
            ["", "1", &lower, "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "0123456789ABCDEFGHJKMNPQR#", "É123456789ABCDEFGHJKMNPQR"]
        {
            assert_eq!(WebhookId::parse(text), None, "{text}");
        }
    }
}

//! Long contents. They are compressed and stored in an item, or in parts next to it if they are too
//! big.
//!
//! Several domains store long texts: datasets of runs, records and schemas of evaluation datasets,
//! and scorers. `crate::compressed_content` compresses and splits the texts. The callers define the
//! keys of the parts.
//!
//! The key of a part contains a hash of the content and of the entity that the content belongs to.
//! A part may therefore be written again, but never changes. If a content can be replaced or
//! deleted, it must not share its parts with any other packing of the same content: see
//! [`pack_once`].

use std::collections::HashMap;
use std::hash::BuildHasher;

use crate::attributes::{CONTENT, CONTENT_ID, CONTENT_PARTS, CONTENT_SIZE};
use crate::compressed_content::{compress, decompress, parts};
use key_schema::{Key, Ordinal, Segment, WideDigest};
use mlflow_api::{Error, Result};
use rand::RngExt;
use table::{Item, Table, Update, Value, bytes, number, text};

/// Maximum number of bytes of compressed content that is stored in an item itself instead of in
/// parts. An item has room for 400 KB, and a transaction for 4 MB.
pub const MAX_INLINE_BYTES: usize = 256 << 10;

/// Attributes of an item that describe a long content.
const ATTRIBUTES: [&str; 4] = [CONTENT.name(), CONTENT_SIZE.name(), CONTENT_ID.name(), CONTENT_PARTS.name()];

/// A content in its stored form.
pub struct PackedContent {
    attributes: Vec<(&'static str, Value)>,
    /// Items that must be written before the item that refers to them.
    pub parts: Vec<Item>,
}

/// Packs the content of the entity called `owner`. The content is stored in the item itself if its
/// compressed size is at most `inline` bytes. `part_key` creates the keys of its parts.
#[must_use]
pub fn pack(
    owner: &str,
    content: &str,
    inline: usize,
    part_key: impl Fn(&WideDigest, &Ordinal) -> Key,
) -> PackedContent {
    let compressed = compress(content);
    let size = (CONTENT_SIZE.name(), number(i64::try_from(content.len()).unwrap_or(i64::MAX)));
    if compressed.len() <= inline {
        return PackedContent { attributes: vec![size, (CONTENT.name(), bytes(compressed))], parts: Vec::new() };
    }
    let id = WideDigest::of(&[owner, content]);
    let ordinals = (0..).map(Ordinal);
    let parts: Vec<_> = ordinals
        .zip(parts(&compressed))
        .map(|(ordinal, part)| Item::new(part_key(&id, &ordinal)).with(CONTENT, bytes(part.to_vec())))
        .collect();
    let count = i64::try_from(parts.len()).unwrap_or(i64::MAX);
    let mut digits = String::new();
    id.write(&mut digits);
    let named = [(CONTENT_ID.name(), text(digits)), (CONTENT_PARTS.name(), number(count))];
    PackedContent { attributes: [size].into_iter().chain(named).collect(), parts }
}

/// Packs a content into parts that belong to this packing only, even if the same content is packed
/// again. Such parts may be deleted at any later time and more than once, because no other item
/// refers to them.
#[must_use]
pub fn pack_once(
    owner: &str,
    content: &str,
    inline: usize,
    part_key: impl Fn(&WideDigest, &Ordinal) -> Key,
) -> PackedContent {
    let once: u64 = rand::rng().random();
    pack(&format!("{owner} {once:016x}"), content, inline, part_key)
}

impl PackedContent {
    /// Adds the content to an item.
    #[must_use]
    pub fn on(&self, item: Item) -> Item {
        self.attributes.iter().fold(item, |item, (name, value)| item.with(*name, value.clone()))
    }

    /// Adds the content to an update, replacing the previous content.
    #[must_use]
    pub fn set_by(&self, update: Update) -> Update {
        ATTRIBUTES.into_iter().fold(update, |update, name| {
            match self.attributes.iter().find(|(attribute, _)| *attribute == name) {
                Some((_, value)) => update.set(name, value.clone()),
                None => update.remove(name),
            }
        })
    }

    /// Returns the keys of the parts.
    #[must_use]
    pub fn part_keys(&self) -> Vec<Key> {
        self.parts.iter().filter_map(Item::key).collect()
    }
}

/// Returns the keys of the parts of an item's content. Empty if it has no parts.
#[must_use]
pub fn part_keys(item: &Item, part_key: impl Fn(&WideDigest, &Ordinal) -> Key) -> Vec<Key> {
    let Some(id) = item.get(CONTENT_ID) else { return Vec::new() };
    let count = item.get(CONTENT_PARTS).unwrap_or_default();
    (0..count).map(|part| part_key(&id, &Ordinal(part))).collect()
}

/// Unpacks an item's content, given the parts in `found`. Returns `None` if a part is missing or
/// unreadable, because the item was changed after it was read, or is corrupt.
#[must_use]
pub fn unpack(item: &Item, part_keys: &[Key], found: &HashMap<Key, Item, impl BuildHasher>) -> Option<String> {
    let held = |item: &Item| item.bytes(CONTENT).map(<[u8]>::to_vec);
    let bytes = if part_keys.is_empty() {
        held(item)
    } else {
        let parts: Option<Vec<_>> = part_keys.iter().map(|key| found.get(key).and_then(held)).collect();
        parts.map(|parts| parts.concat())
    };
    // A truncated compressed text decompresses without an error to the beginning of the content, so
    // the size is compared as well.
    decompress(&bytes?).filter(|content| content.len() == size(item))
}

/// Reads an item's content. If the parts have been replaced since the item was read, the item is
/// read again. Returns `None` if the item no longer exists or no longer has a content. Takes no
/// request unless the content has parts.
pub async fn read(
    table: &Table,
    item: &Item,
    part_key: impl Fn(&WideDigest, &Ordinal) -> Key,
) -> Result<Option<String>> {
    Ok(read_with_item(table, item.clone(), part_key).await?.map(|(_, content)| content))
}

/// Reads an item's content, and returns it with the item that it belongs to: the given item, or its
/// current version.
pub async fn read_with_item(
    table: &Table,
    mut item: Item,
    part_key: impl Fn(&WideDigest, &Ordinal) -> Key,
) -> Result<Option<(Item, String)>> {
    for attempt in 0..table.retry().attempts {
        table.retry().pause(attempt).await;
        let keys = part_keys(&item, &part_key);
        let parts = table.get_many(&keys).await?;
        if let Some(content) = unpack(&item, &keys, &parts) {
            return Ok(Some((item, content)));
        }
        let Some(key) = item.key() else { break };
        match table.get(&key).await? {
            Some(now) if now.has(CONTENT_SIZE) => item = now,
            _ => return Ok(None),
        }
    }
    // The current item refers to missing or unreadable parts, which only a bug can cause.
    Err(Error::internal(format!("the content of an item cannot be read: {:?}", item.key())))
}

/// Copies the content of an item to another item that replaces it. The parts stay as they are.
#[must_use]
pub fn copy(from: &Item, to: Item) -> Item {
    ATTRIBUTES.into_iter().fold(to, |to, name| match from.0.get(name) {
        Some(value) => to.with(name, value.clone()),
        None => to,
    })
}

/// Returns the size of an item's content in bytes.
#[must_use]
pub fn size(item: &Item) -> usize {
    item.get(CONTENT_SIZE).and_then(|size| usize::try_from(size).ok()).unwrap_or_default()
}

//! Long contents: compressed in an item or, if they are too big for it, in parts next to it.
//!
//! Several domains keep long texts: datasets of runs, records and schemas of evaluation datasets,
//! scorers. `entities::content` compresses and cuts texts. The keys
//! of parts are the caller's.
//!
//! Parts are named by a hash of the content and of the entity that it belongs to. So they may be
//! written again, and are never changed. If the content may be replaced or deleted, its parts are
//! of one packing only: see [`pack_once`].

use std::collections::HashMap;
use std::hash::BuildHasher;

use entities::attributes::{CONTENT, CONTENT_ID, CONTENT_PARTS, CONTENT_SIZE};
use entities::content::{compress, decompress, parts};
use key_schema::{Key, Ordinal, Segment, WideDigest};
use mlflow_api::{Error, Result};
use rand::RngExt;
use table::{Item, Table, Update, Value, bytes, number, text};

/// Bytes of compressed content that an item holds itself. An item has room for 400 KB, a transaction for 4 MB.
pub const INLINE: usize = 256 << 10;

/// The attributes of an item about a long content.
const ATTRIBUTES: [&str; 4] = [CONTENT.name(), CONTENT_SIZE.name(), CONTENT_ID.name(), CONTENT_PARTS.name()];

/// A content as it is kept.
pub struct Packed {
    attributes: Vec<(&'static str, Value)>,
    /// Items to be written before the one that names them.
    pub parts: Vec<Item>,
}

/// Packs the content of the entity called `owner`. It goes into the item itself if it has at most
/// `inline` bytes when compressed. `part_key` makes the keys of its parts.
#[must_use]
pub fn pack(owner: &str, content: &str, inline: usize, part_key: impl Fn(&WideDigest, &Ordinal) -> Key) -> Packed {
    let compressed = compress(content);
    let size = (CONTENT_SIZE.name(), number(i64::try_from(content.len()).unwrap_or(i64::MAX)));
    if compressed.len() <= inline {
        return Packed { attributes: vec![size, (CONTENT.name(), bytes(compressed))], parts: Vec::new() };
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
    Packed { attributes: [size].into_iter().chain(named).collect(), parts }
}

/// The same with parts that no other packing has, not even of the same content. So they may be deleted at any later time, and more
/// than once: nobody else names them.
#[must_use]
pub fn pack_once(owner: &str, content: &str, inline: usize, part_key: impl Fn(&WideDigest, &Ordinal) -> Key) -> Packed {
    let once: u64 = rand::rng().random();
    pack(&format!("{owner} {once:016x}"), content, inline, part_key)
}

impl Packed {
    /// The item with the content.
    #[must_use]
    pub fn on(&self, item: Item) -> Item {
        self.attributes.iter().fold(item, |item, (name, value)| item.with(*name, value.clone()))
    }

    /// The update, which then sets the content in place of another.
    #[must_use]
    pub fn set_by(&self, update: Update) -> Update {
        ATTRIBUTES.into_iter().fold(update, |update, name| {
            match self.attributes.iter().find(|(attribute, _)| *attribute == name) {
                Some((_, value)) => update.set(name, value.clone()),
                None => update.remove(name),
            }
        })
    }

    /// Keys of the parts.
    #[must_use]
    pub fn part_keys(&self) -> Vec<Key> {
        self.parts.iter().filter_map(Item::key).collect()
    }
}

/// The keys of the parts of an item's content, if it has any.
#[must_use]
pub fn part_keys(item: &Item, part_key: impl Fn(&WideDigest, &Ordinal) -> Key) -> Vec<Key> {
    let Some(id) = item.get(CONTENT_ID) else { return Vec::new() };
    let count = item.get(CONTENT_PARTS).unwrap_or_default();
    (0..count).map(|part| part_key(&id, &Ordinal(part))).collect()
}

/// An item's content; its parts are among `found`. Nothing, where one is missing or cannot be read: the item was changed since it was
/// read, or is broken.
#[must_use]
pub fn unpack(item: &Item, part_keys: &[Key], found: &HashMap<Key, Item, impl BuildHasher>) -> Option<String> {
    let held = |item: &Item| item.bytes(CONTENT).map(<[u8]>::to_vec);
    let bytes = if part_keys.is_empty() {
        held(item)
    } else {
        let parts: Option<Vec<_>> = part_keys.iter().map(|key| found.get(key).and_then(held)).collect();
        parts.map(|parts| parts.concat())
    };
    // A compressed text that was cut off can be decompressed as far as it goes.
    decompress(&bytes?).filter(|content| content.len() == size(item))
}

/// An item's content, of the item as it is now where its parts were replaced since it was read; nothing, where it is gone, or
/// has no content any more. No request unless the content has parts.
pub async fn read(
    table: &Table,
    item: &Item,
    part_key: impl Fn(&WideDigest, &Ordinal) -> Key,
) -> Result<Option<String>> {
    Ok(read_with_item(table, item.clone(), part_key).await?.map(|(_, content)| content))
}

/// The same with the item that the content is of: the one given, or as it is now.
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
    // A defect of ours.
    Err(Error::internal(format!("a content cannot be read: {:?}", item.key())))
}

/// Bytes of an item's content.
#[must_use]
pub fn size(item: &Item) -> usize {
    item.get(CONTENT_SIZE).and_then(|size| usize::try_from(size).ok()).unwrap_or_default()
}

//! Spans of blocks in the archive. An object of the archive contains the packed spans of one block:
//! the unchanged contents of its items of spans, one after another.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use artifact_store::{Archive, ArchiveError};
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use key_schema::WideDigest;
use mlflow_api::ArchiveObject;
use table::Failure;

use crate::bytes::{ByteReader, put_count, put_number};
use crate::compression::decompress;

/// Maximum number of bytes of a group in an object. A group has at most 350 KB before compression.
const MAX_GROUP_BYTES: u32 = 1 << 20;
/// Maximum number of bytes between two ranges of an object that are read together. Reading these
/// bytes takes less time than another request.
const MAX_GAP_BYTES: u64 = 256 << 10;
/// Maximum number of bytes per request.
const MAX_REQUEST_BYTES: u64 = 8 << 20;
/// Number of concurrent requests.
const CONCURRENCY: usize = 8;

const _: () = assert!(MAX_REQUEST_BYTES <= Archive::MAX_READ_BYTES as u64, "the archive refuses longer reads");

/// Where the spans of a group are in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchivedRange {
    /// The object.
    pub object: ArchiveObject,
    /// Offset in the object, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl ArchivedRange {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// The archived groups of a block, by digest.
pub type ArchivedGroups = BTreeMap<WideDigest, ArchivedRange>;

/// Encodes the archived groups of a block.
pub(crate) fn write(groups: &ArchivedGroups) -> Vec<u8> {
    let objects: Vec<_> = objects(groups).into_iter().collect();
    let mut written = Vec::new();
    put_count(&mut written, objects.len());
    for object in &objects {
        written.extend_from_slice(&object.number().to_be_bytes());
    }
    put_count(&mut written, groups.len());
    for (WideDigest(digest), range) in groups {
        written.extend_from_slice(&digest.to_be_bytes());
        put_count(&mut written, objects.binary_search(&range.object).unwrap_or_else(|at| at));
        put_number(&mut written, range.offset);
        put_number(&mut written, u64::from(range.length));
    }
    written
}

/// Decodes the archived groups of a block.
pub(crate) fn read(written: &[u8]) -> Option<ArchivedGroups> {
    let mut reader = ByteReader(written);
    let mut objects = Vec::new();
    for _ in 0..reader.count()? {
        objects.push(ArchiveObject::new(number(&mut reader)?));
    }
    let mut groups = BTreeMap::new();
    for _ in 0..reader.count()? {
        let digest = WideDigest(number(&mut reader)?);
        let object = *objects.get(usize::try_from(reader.number()?).ok()?)?;
        let (offset, length) = (reader.number()?, u32::try_from(reader.number()?).ok()?);
        if length == 0 || length > MAX_GROUP_BYTES || offset.checked_add(u64::from(length)).is_none() {
            return None;
        }
        groups.insert(digest, ArchivedRange { object, offset, length });
    }
    reader.is_empty().then_some(groups)
}

fn number(reader: &mut ByteReader<'_>) -> Option<u128> {
    Some(u128::from_be_bytes(reader.take(16)?.try_into().ok()?))
}

/// Returns the objects that contain these groups.
#[must_use]
pub fn objects(groups: &ArchivedGroups) -> BTreeSet<ArchiveObject> {
    groups.values().map(|range| range.object).collect()
}

/// Joins the contents of items of spans to an object. Returns the object's content, and where each
/// group is in it. Returns `None` if a content is empty or too long for a group.
#[must_use]
pub fn joined(object: ArchiveObject, contents: &BTreeMap<WideDigest, Vec<u8>>) -> Option<(Bytes, ArchivedGroups)> {
    let (mut joined, mut groups) = (Vec::new(), BTreeMap::new());
    for (digest, content) in contents {
        let length = u32::try_from(content.len()).ok().filter(|length| (1..=MAX_GROUP_BYTES).contains(length))?;
        groups.insert(*digest, ArchivedRange { object, offset: joined.len() as u64, length });
        joined.extend_from_slice(content);
    }
    Some((joined.into(), groups))
}

/// Why an archived group cannot be read.
#[derive(Debug)]
pub enum GroupError {
    /// The object is missing or damaged, and the spans are lost.
    Lost(String),
    /// Any other failure. Repeating the request may succeed.
    Failed(Failure),
}

impl From<ArchiveError> for GroupError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Missing(_) | ArchiveError::Incomplete(_) => Self::Lost(error.to_string()),
            ArchiveError::Unavailable(cause) => Self::Failed(Failure::Unavailable(cause)),
            ArchiveError::Failed(_) | ArchiveError::Absent => Self::Failed(Failure::Inaccessible(error.to_string())),
        }
    }
}

/// The outcome for each archived group: its content as in the item of spans, and the uncompressed
/// content.
pub type ReadGroups = HashMap<WideDigest, Result<(Bytes, Vec<u8>), GroupError>>;

/// Reads archived groups. Groups of an object that are close together are read by one request, of up
/// to 8 MB. Each content is compared with its digest.
pub async fn read_archived(archive: &Archive, groups: &ArchivedGroups) -> ReadGroups {
    let reads = requests(groups).into_iter().map(|request| async move {
        let Request { object, offset, end, groups } = request;
        let length = usize::try_from(end - offset).unwrap_or(usize::MAX);
        let content = archive.read(object, offset, length).await;
        groups
            .into_iter()
            .map(move |(digest, range)| (digest, part(digest, range, offset, &content)))
            .collect::<Vec<_>>()
    });
    let read: Vec<_> = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).collect().await;
    read.into_iter().flatten().collect()
}

/// Returns the content of a group, given the content of a range of its object.
fn part(
    digest: WideDigest,
    range: ArchivedRange,
    offset: u64,
    content: &Result<Bytes, ArchiveError>,
) -> Result<(Bytes, Vec<u8>), GroupError> {
    let content = content.as_ref().map_err(|error| GroupError::from(error.clone()))?;
    let read = || {
        let (from, to) = (usize::try_from(range.offset - offset).ok()?, usize::try_from(range.end() - offset).ok()?);
        let part = content.get(from..to)?;
        let unpacked = decompress(part).filter(|unpacked| WideDigest::of_bytes(unpacked) == digest)?;
        Some((content.slice(from..to), unpacked))
    };
    read().ok_or_else(|| GroupError::Lost(format!("object {} of the archive is damaged", range.object)))
}

/// A range of an object that is read by one request.
struct Request {
    object: ArchiveObject,
    offset: u64,
    end: u64,
    groups: Vec<(WideDigest, ArchivedRange)>,
}

/// Returns the requests that read these groups.
fn requests(groups: &ArchivedGroups) -> Vec<Request> {
    let mut sorted: Vec<_> = groups.iter().map(|(digest, range)| (*digest, *range)).collect();
    sorted.sort_by_key(|(_, range)| *range);
    let mut requests: Vec<Request> = Vec::new();
    for (digest, range) in sorted {
        let is_near = |last: &&mut Request| {
            let fits = range.end().max(last.end) - last.offset <= MAX_REQUEST_BYTES;
            last.object == range.object && range.offset <= last.end.saturating_add(MAX_GAP_BYTES) && fits
        };
        match requests.last_mut().filter(is_near) {
            Some(last) => {
                last.end = last.end.max(range.end());
                last.groups.push((digest, range));
            }
            None => requests.push(Request {
                object: range.object,
                offset: range.offset,
                end: range.end(),
                groups: vec![(digest, range)],
            }),
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    fn groups() -> impl Strategy<Value = ArchivedGroups> {
        let range = (0..3_u128, 0..20_000_000_u64, 1..=MAX_GROUP_BYTES)
            .prop_map(|(object, offset, length)| ArchivedRange { object: ArchiveObject::new(object), offset, length });
        btree_map(any::<u128>().prop_map(WideDigest), range, 0..20)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(groups in groups()) {
            prop_assert_eq!(read(&write(&groups)), Some(groups));
        }

        #[test]
        fn other_bytes_do_no_harm(bytes: Vec<u8>) {
            if let Some(groups) = read(&bytes) {
                prop_assert!(groups.values().all(|range| range.length > 0 && range.end() > range.offset));
            }
        }

        #[test]
        fn requests_contain_all_groups(groups in groups()) {
            let requests = requests(&groups);
            let mut found = BTreeMap::new();
            for request in &requests {
                prop_assert!(request.end - request.offset <= MAX_REQUEST_BYTES);
                for (digest, range) in &request.groups {
                    prop_assert!(range.object == request.object);
                    prop_assert!(request.offset <= range.offset && range.end() <= request.end);
                    found.insert(*digest, *range);
                }
            }
            prop_assert_eq!(found, groups);
        }
    }

    #[test]
    fn a_group_of_no_or_too_many_bytes_is_refused() {
        let object = ArchiveObject::new(1);
        for length in [0, MAX_GROUP_BYTES + 1] {
            let groups = BTreeMap::from([(WideDigest(1), ArchivedRange { object, offset: 0, length })]);
            assert_eq!(read(&write(&groups)), None, "{length}");
            let contents = BTreeMap::from([(WideDigest(1), vec![0; length as usize])]);
            assert!(joined(object, &contents).is_none(), "{length}");
        }
        let groups = BTreeMap::from([(WideDigest(1), ArchivedRange { object, offset: u64::MAX, length: 1 })]);
        assert_eq!(read(&write(&groups)), None);
    }

    #[test]
    fn the_groups_of_an_object_are_read_together() {
        let object = ArchiveObject::new(1);
        let contents: BTreeMap<_, _> = (0..8).map(|digest| (WideDigest(digest), vec![0; 50_000])).collect();
        let (content, groups) = joined(object, &contents).unwrap();
        assert_eq!((content.len(), objects(&groups).len()), (400_000, 1));
        let all = requests(&groups);
        assert!(all.len() == 1 && (all[0].offset, all[0].end) == (0, 400_000));
        let ends: ArchivedGroups = groups.into_iter().filter(|(digest, _)| [0, 7].contains(&digest.0)).collect();
        assert_eq!(requests(&ends).len(), 2, "the groups between them are not read");
    }
}

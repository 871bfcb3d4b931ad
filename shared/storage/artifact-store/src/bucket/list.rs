//! Lists the keys of a bucket.

use percent_encoding::percent_decode_str;

use crate::bucket::connection::BucketRequest;
use crate::bucket::failure::{BucketFailure, Result};
use crate::bucket::requests::Bucket;
use crate::bucket::xml::{self, Element};

/// An object in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedObject {
    /// Key of the object.
    pub key: String,
    /// Length in bytes.
    pub length: u64,
}

/// A page of a list, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPage {
    /// The objects.
    pub objects: Vec<ListedObject>,
    /// Common prefixes of keys, up to the next slash after the listed prefix.
    pub prefixes: Vec<String>,
    /// Token of the next page, or `None` on the last page.
    pub next: Option<String>,
}

impl Bucket {
    /// Lists up to `most` keys (at most 1,000) with a prefix, starting at a previous page's token.
    /// With `by_directory`, keys with a slash after the prefix are grouped by their prefix up to
    /// that slash. Takes one request, which is strongly consistent.
    ///
    /// # Errors
    /// Any [`crate::bucket::BucketFailure`].
    pub async fn list(&self, prefix: &str, by_directory: bool, from: Option<&str>, most: u32) -> Result<ObjectPage> {
        let most = most.to_string();
        // URL encoding is requested, because keys may contain characters that XML cannot represent.
        let mut query = vec![("list-type", "2"), ("encoding-type", "url"), ("prefix", prefix), ("max-keys", &most)];
        query.extend(by_directory.then_some(("delimiter", "/")));
        query.extend(from.map(|from| ("continuation-token", from)));
        let request = BucketRequest { query: &query, ..BucketRequest::new("GET", "") };
        let reply = self.connection().await?.send(request).await?;
        read(&reply.body)
    }
}

fn read(answer: &str) -> Result<ObjectPage> {
    let mut page = ObjectPage::default();
    let (mut is_encoded, mut is_truncated) = (false, false);
    xml::read(answer, "ListBucketResult", |name, element| {
        match name {
            "EncodingType" => is_encoded = xml::text(element)? == "url",
            "IsTruncated" => is_truncated = xml::text(element)? == "true",
            "NextContinuationToken" => page.next = Some(xml::text(element)?),
            "Contents" => page.objects.push(object(element)?),
            "CommonPrefixes" => xml::children(element, &mut |name, element| {
                if name == "Prefix" {
                    page.prefixes.push(xml::text(element)?);
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    if is_truncated && page.next.is_none() {
        return Err(BucketFailure::broken("the bucket returned a truncated list without a continuation token"));
    }
    if is_encoded {
        for text in page.objects.iter_mut().map(|object| &mut object.key).chain(&mut page.prefixes) {
            *text = percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        }
    }
    Ok(page)
}

fn object(element: &mut Element<'_, '_>) -> Result<ListedObject> {
    let mut object = ListedObject::default();
    xml::children(element, &mut |name, element| {
        match name {
            "Key" => object.key = xml::text(element)?,
            "Size" => object.length = xml::text(element)?.parse().map_err(BucketFailure::broken)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let answer = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
            <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><Prefix>p/</Prefix>
            <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
            <KeyCount>2</KeyCount><MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated>
            <Contents><Key>p/a+b%2B%C3%A9%01</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;x&quot;</ETag>
            <Size>12</Size><Owner><ID>o</ID></Owner></Contents>
            <CommonPrefixes><Prefix>p/d/</Prefix></CommonPrefixes><EncodingType>url</EncodingType></ListBucketResult>";
        let page = read(answer).unwrap();
        assert_eq!(page.objects, [ListedObject { key: "p/a b+é\u{1}".to_owned(), length: 12 }]);
        assert_eq!(page.prefixes, ["p/d/"]);
        assert_eq!(page.next.as_deref(), Some("1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM="));
        let plain = "<ListBucketResult><Contents><Key>a+%2B</Key><Size>0</Size></Contents></ListBucketResult>";
        assert_eq!(read(plain).unwrap().objects[0].key, "a+%2B");
        let cut = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
        for broken in [cut, "<ListBucketResult><Contents><Size>x</Size></Contents></ListBucketResult>", "<Html/>", ""] {
            assert!(read(broken).is_err(), "{broken}");
        }
    }
}

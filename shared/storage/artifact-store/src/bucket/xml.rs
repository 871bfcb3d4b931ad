//! XML in S3's responses and in request bodies.

use aws_smithy_xml::decode::{Document, ScopedDecoder, XmlDecodeError, try_data};
use aws_smithy_xml::encode::{ScopeWriter, XmlWriter};

use crate::bucket::failure::{BucketFailure, Result};

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// An element whose content has not been read yet.
pub(crate) type Element<'inp, 'a> = ScopedDecoder<'inp, 'a>;

/// Parses a document, and calls `take` with each child of the root and its name. The name of the
/// root element only has to start with `root`, because stores other than S3 may extend it.
pub(crate) fn read(
    document: &str,
    root: &str,
    mut take: impl FnMut(&str, &mut Element<'_, '_>) -> Result<()>,
) -> Result<()> {
    // S3 sends spaces before the document while it is working, to keep the connection open.
    let document = document.trim();
    let mut parsed = Document::new(document);
    let mut element = parsed.root_element().map_err(|error| unreadable(&error))?;
    let found = element.start_el().local().to_owned();
    if !found.starts_with(root) {
        return Err(BucketFailure::Broken(format!("the bucket answered with {found} for {root}")));
    }
    let mut is_empty = true;
    children(&mut element, &mut |name, child| {
        is_empty = false;
        take(name, child)
    })?;
    // The document's end is checked separately, because the parser treats a truncated document and
    // text that it cannot parse like the end of the element.
    if is_closed(document, &found) || (is_empty && document.ends_with("/>")) {
        Ok(())
    } else {
        Err(BucketFailure::Broken(format!("a response of the bucket is truncated within {found}")))
    }
}

/// Checks whether the last tag of a document closes its root.
fn is_closed(document: &str, root: &str) -> bool {
    let last = document.rsplit_once("</").and_then(|(_, tag)| tag.strip_suffix('>'));
    last.is_some_and(|tag| tag.trim_end().rsplit(':').next() == Some(root))
}

/// Calls `take` with each child of an element and the child's name.
pub(crate) fn children(
    element: &mut Element<'_, '_>,
    take: &mut dyn FnMut(&str, &mut Element<'_, '_>) -> Result<()>,
) -> Result<()> {
    while let Some(mut child) = element.next_tag() {
        let name = child.start_el().local().to_owned();
        take(&name, &mut child)?;
    }
    Ok(())
}

/// Returns the text of an element.
pub(crate) fn text(element: &mut Element<'_, '_>) -> Result<String> {
    Ok(try_data(element).map_err(|error| unreadable(&error))?.into_owned())
}

/// Returns code and message of an error response, or `None` for other responses.
pub(crate) fn error(document: &str) -> Option<(String, String)> {
    let (mut code, mut message) = (String::new(), String::new());
    let read = read(document, "Error", |name, element| {
        match name {
            "Code" => code = text(element)?,
            "Message" => message = text(element)?,
            _ => {}
        }
        Ok(())
    });
    read.is_ok().then_some((code, message))
}

/// Writes a document with this root element. `content` writes the children of the root.
pub(crate) fn write(root: &str, content: impl FnOnce(&mut ScopeWriter<'_, '_>)) -> String {
    let mut document = String::new();
    {
        let mut writer = XmlWriter::new(&mut document);
        let mut scope = writer.start_el(root).write_ns(NAMESPACE, None).finish();
        content(&mut scope);
        scope.finish();
    }
    document
}

/// Writes an element that contains a text.
pub(crate) fn element(scope: &mut ScopeWriter<'_, '_>, name: &str, text: &str) {
    let mut inner = scope.start_el(name).finish();
    inner.data(text);
    inner.finish();
}

fn unreadable(error: &XmlDecodeError) -> BucketFailure {
    BucketFailure::Broken(format!("a response of the bucket is malformed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_both_ways() {
        let written = write("Delete", |scope| {
            let mut object = scope.start_el("Object").finish();
            element(&mut object, "Key", "a<&>\"'é");
            object.finish();
        });
        assert!(
            written.starts_with("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object><Key>a&lt;&amp;")
        );
        let mut keys = Vec::new();
        read(&written, "Delete", |name, object| {
            assert_eq!(name, "Object");
            children(object, &mut |_, key| {
                keys.push(text(key)?);
                Ok(())
            })
        })
        .unwrap();
        assert_eq!(keys, ["a<&>\"'é"]);
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        let answer = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>x</Message><Key>k</Key></Error>";
        assert_eq!(error(answer), Some(("NoSuchKey".to_owned(), "x".to_owned())));
        for other in ["", "text", "<Other><Code>x</Code></Other>", "<html>", "<Error"] {
            assert_eq!(error(other), None, "{other}");
        }
    }

    #[test]
    fn half_a_document_is_none() {
        let whole = "\n <List><Key>a</Key><Key>b</Key></List> ";
        let keys = |document: &str| {
            let mut keys = Vec::new();
            read(document, "List", |_, key| {
                keys.push(text(key)?);
                Ok(())
            })
            .map(|()| keys)
        };
        assert_eq!(keys(whole).unwrap(), ["a", "b"]);
        assert_eq!(keys("<s:List xmlns:s=\"x\"><Key>a</Key></s:List>").unwrap(), ["a"]);
        for empty in ["<List/>", "<List></List>", "<?xml version=\"1.0\"?>\n<List xmlns=\"x\"/>"] {
            assert_eq!(keys(empty).unwrap(), [""; 0], "{empty}");
        }
        let whole = whole.trim();
        for length in 0..whole.len() {
            assert!(keys(&whole[..length]).is_err(), "{}", &whole[..length]);
        }
    }
}

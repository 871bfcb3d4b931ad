//! XML responses as a tree of elements.

use xmlparser::{ElementEnd, Token, Tokenizer};

/// An XML element: its name without a prefix, its text, and its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct XmlElement {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) children: Vec<XmlElement>,
}

/// Parses a document. Returns `None` if it is not XML or is incomplete.
pub(super) fn parse(document: &str) -> Option<XmlElement> {
    let mut open = vec![XmlElement::default()];
    for token in Tokenizer::from(document) {
        match token.ok()? {
            Token::ElementStart { local, .. } => {
                open.push(XmlElement { name: local.as_str().to_owned(), ..XmlElement::default() });
            }
            Token::ElementEnd { end: ElementEnd::Empty | ElementEnd::Close(..), .. } => {
                let closed = open.pop()?;
                open.last_mut()?.children.push(closed);
            }
            Token::Text { text } => open.last_mut()?.text.push_str(&plain(text.as_str())),
            Token::Cdata { text, .. } => open.last_mut()?.text.push_str(text.as_str()),
            _ => {}
        }
    }
    let mut root = open.pop().filter(|_| open.is_empty())?;
    root.children.pop()
}

/// Replaces the entities in a text by their characters.
fn plain(text: &str) -> String {
    let Some((before, rest)) = text.split_once('&') else { return text.to_owned() };
    let Some((entity, rest)) = rest.split_once(';') else { return text.to_owned() };
    let number = entity.strip_prefix("#x").map(|digits| u32::from_str_radix(digits, 16));
    let number = number.or_else(|| entity.strip_prefix('#').map(str::parse));
    let character = match entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => number.and_then(Result::ok).and_then(char::from_u32),
    };
    let character = character.map_or_else(|| format!("&{entity};"), String::from);
    format!("{before}{character}{}", plain(rest))
}

impl XmlElement {
    /// Returns the first child of this name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the element at the end of a path of names.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |element, name| element.child(name))
    }

    /// Returns the text of a child, or an empty text if the child does not exist.
    pub(super) fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| child.text.as_str())
    }

    /// Returns all children of this name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the texts of all children of this name.
    pub(super) fn texts_of(&self, name: &str) -> Vec<String> {
        self.all(name).map(|child| child.text.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_texts_are_read() {
        let document = "<?xml version=\"1.0\"?>\n<a xmlns='u' x=\"1\"><b>1 &lt; 2 &amp;&#38; &#x41;&nope;</b><b/><n:c><d>x</d></n:c></a>";
        let read = parse(document).unwrap();
        assert_eq!((read.name.as_str(), read.texts_of("b")), ("a", vec!["1 < 2 && A&nope;".to_owned(), String::new()]));
        assert_eq!(read.at(&["c", "d"]).unwrap().text, "x");
        assert_eq!((read.text_of("z"), read.at(&["c", "z"])), ("", None));
    }

    #[test]
    fn half_a_document_is_none() {
        for text in ["", "{}", "<a>", "<a><b></a", "</a>"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

//! The parts of a filter string.

/// The kinds of tokens, and of groups of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    // Tokens.
    Space,
    Newline,
    Comment,
    Name,
    TypeName,
    Placeholder,
    Keyword,
    Direction,
    StatementWord,
    Integer,
    Float,
    Hexadecimal,
    SingleQuoted,
    DoubleQuoted,
    Punctuation,
    Comparator,
    Operator,
    Wildcard,
    Assign,
    Unknown,
    // Groups.
    CommentGroup,
    Parenthesis,
    Brackets,
    Function,
    Where,
    Identifier,
    TypedLiteral,
    Operation,
    Comparison,
    Assignment,
    IdentifierList,
}

impl Kind {
    /// Whether this is a group of tokens.
    pub(super) fn is_group(self) -> bool {
        matches!(
            self,
            Self::CommentGroup
                | Self::Parenthesis
                | Self::Brackets
                | Self::Function
                | Self::Where
                | Self::Identifier
                | Self::TypedLiteral
                | Self::Operation
                | Self::Comparison
                | Self::Assignment
                | Self::IdentifierList
        )
    }

    /// Whether this is an integer or a decimal fraction.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Float)
    }
}

/// A token or a group: a kind and the stretch of the source it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Where in the source the text begins.
    pub(super) start: usize,
    /// The members of a comparison. The members of other groups play no further part.
    pub(crate) members: Vec<Node<'a>>,
}

impl<'a> Node<'a> {
    pub(super) fn new(kind: Kind, text: &'a str, start: usize) -> Self {
        Self { kind, text, start, members: Vec::new() }
    }

    /// A keyword that is made of several tokens.
    pub(crate) fn keyword(text: &'a str) -> Self {
        Self::new(Kind::Keyword, text, 0)
    }

    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether this is white space.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self.kind, Kind::Space | Kind::Newline)
    }

    /// Whether this is the plain keyword `word` (given in upper case), in any case.
    pub(crate) fn is_keyword(&self, word: &str) -> bool {
        self.kind == Kind::Keyword && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether this is the punctuation mark `mark`.
    pub(super) fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Punctuation && self.text == mark
    }
}

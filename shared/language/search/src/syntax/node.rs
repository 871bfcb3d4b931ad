//! The nodes of a parsed filter string.

/// The kinds of tokens, and of groups of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
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

impl NodeKind {
    /// Checks whether nodes of this kind are groups of tokens.
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

    /// Checks whether this is an integer or a decimal fraction.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Float)
    }
}

/// A token or a group of tokens: its kind, and the part of the source that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxNode<'a> {
    pub(crate) kind: NodeKind,
    pub(crate) text: &'a str,
    /// The position of the text in the source.
    pub(super) start: usize,
    /// The members of a comparison. Empty for other groups, whose members are not used.
    pub(crate) members: Vec<SyntaxNode<'a>>,
}

impl<'a> SyntaxNode<'a> {
    pub(super) fn new(kind: NodeKind, text: &'a str, start: usize) -> Self {
        Self { kind, text, start, members: Vec::new() }
    }

    /// Creates a keyword that is composed of several tokens.
    pub(crate) fn keyword(text: &'a str) -> Self {
        Self::new(NodeKind::Keyword, text, 0)
    }

    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Checks whether this is white space.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self.kind, NodeKind::Space | NodeKind::Newline)
    }

    /// Checks whether this is the plain keyword `word`, which is given in upper case. The
    /// comparison ignores case.
    pub(crate) fn is_keyword(&self, word: &str) -> bool {
        self.kind == NodeKind::Keyword && self.text.eq_ignore_ascii_case(word)
    }

    /// Checks whether this is the punctuation mark `mark`.
    pub(super) fn is_mark(&self, mark: &str) -> bool {
        self.kind == NodeKind::Punctuation && self.text == mark
    }
}

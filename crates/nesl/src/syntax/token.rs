//! Tokens.

use crate::syntax::Name;
use broadloom_diag::Span;
use std::fmt;
use std::sync::Arc;

/// A piece of source text.
#[derive(Clone, Debug)]
pub struct Token {
    /// The kind, with the value of literals.
    pub kind: TokenKind,
    /// The place.
    pub span: Span,
    /// True if the token is the first on its line and the line is not indented.
    pub at_margin: bool,
}

/// Punctuation, keywords and classes of words.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKind {
    /// A name that is not a keyword.
    Name(Name),
    /// A keyword or an operator that is a word.
    Word(Word),
    /// An operator or a separator.
    Mark(Mark),
    /// An integer literal. Larger ones saturate at `u64::MAX`.
    Int(u64),
    /// A literal with a point or an exponent.
    Float(f64),
    /// `` `c ``
    Char(u8),
    /// `"…"`
    Text(Arc<[u8]>),
    /// The end of the text.
    End,
}

macro_rules! spelled {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant,)* }
        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant,)*];
            /// Returns the spelling.
            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.text()) }
        }
    };
}

spelled! {
    /// Words with a fixed meaning.
    Word {
        /// `if`
        If = "if",
        /// `then`
        Then = "then",
        /// `else`
        Else = "else",
        /// `let`
        Let = "let",
        /// `in`
        In = "in",
        /// `function`
        Function = "function",
        /// `datatype`
        Datatype = "datatype",
        /// `and`
        And = "and",
        /// `or`
        Or = "or",
        /// `xor`
        Xor = "xor",
        /// `nand`
        Nand = "nand",
        /// `nor`
        Nor = "nor",
        /// The value true.
        True = "t",
        /// The value false.
        False = "f",
        /// `time`
        Time = "time",
    }
}

spelled! {
    /// Marks, longest first, so that the lexer takes the longest match.
    Mark {
        /// `->`
        Read = "->",
        /// `>>`
        OldArrow = ">>",
        /// `=>`
        Lambda = "=>",
        /// `<-`
        Write = "<-",
        /// `::`
        Context = "::",
        /// `++`
        Append = "++",
        /// `/=`
        NotEqual = "/=",
        /// `==`
        Equal = "==",
        /// `<=`
        LessEqual = "<=",
        /// `>=`
        GreaterEqual = ">=",
        /// `:=`
        Keyword = ":=",
        /// `||`
        Pad = "||",
        /// `|=`
        FileBind = "|=",
        /// `&=`
        BackgroundBind = "&=",
        /// `-`
        Minus = "-",
        /// `+`
        Plus = "+",
        /// `#`
        Length = "#",
        /// `&`
        Ampersand = "&",
        /// `'`
        Quote = "'",
        /// `(`
        Open = "(",
        /// `)`
        Close = ")",
        /// `*`
        Times = "*",
        /// `,`
        Comma = ",",
        /// `/`
        Divide = "/",
        /// `:`
        Colon = ":",
        /// `;`
        Semicolon = ";",
        /// `<`
        Less = "<",
        /// `=`
        Bind = "=",
        /// `>`
        Greater = ">",
        /// `@`
        Show = "@",
        /// `[`
        OpenBracket = "[",
        /// `\`
        Backslash = "\\",
        /// `]`
        CloseBracket = "]",
        /// `^`
        Power = "^",
        /// `{`
        OpenBrace = "{",
        /// `?`
        Question = "?",
        /// `|`
        Bar = "|",
        /// `}`
        CloseBrace = "}",
        /// `!`
        Bang = "!",
        /// `$`
        Dollar = "$",
        /// `.`
        Dot = ".",
    }
}

impl TokenKind {
    /// Names the token in an error message.
    pub fn describe(&self) -> String {
        match self {
            TokenKind::Name(name) => format!("`{name}`"),
            TokenKind::Word(word) => format!("`{word}`"),
            TokenKind::Mark(mark) => format!("`{mark}`"),
            TokenKind::Int(value) => format!("`{value}`"),
            TokenKind::Float(_) => "a float".to_owned(),
            TokenKind::Char(_) => "a character".to_owned(),
            TokenKind::Text(_) => "a string".to_owned(),
            TokenKind::End => "the end of the text".to_owned(),
        }
    }

    /// Tells whether the token ends a top-level form.
    pub fn ends_form(&self) -> bool {
        matches!(self, TokenKind::Mark(Mark::Semicolon | Mark::Dollar) | TokenKind::End)
    }
}

//! Recovery after a mistake.
//!
//! Two rules make one mistake one diagnostic. Braces opened since the start of the statement are closed
//! first, so that a brace of an operand never ends the function. A line that starts like a statement is one,
//! so that a missing `;` costs only one statement.

use super::Parser;
use super::lexer::TokenKind;
use crate::select;

impl Parser<'_> {
    /// Tests if a token is the first of its line, or the end of the file.
    pub(super) fn starts_line(&self, index: usize) -> bool {
        let index = index.min(self.tokens.len() - 1);
        let Some(before) = index.checked_sub(1).map(|before| self.tokens[before]) else { return true };
        let token = self.tokens[index];
        token.kind == TokenKind::End || self.text[before.end as usize..token.start as usize].contains('\n')
    }

    /// Tests if a function or another top-level item starts here.
    pub(super) fn starts_item(&self) -> bool {
        match self.dotted() {
            Some("entry" | "func") => true,
            Some("visible" | "extern" | "weak") => {
                let next = self.tokens[(self.at + 1).min(self.tokens.len() - 1)];
                next.kind == TokenKind::Dotted && matches!(self.word_of(next), "entry" | "func")
            }
            _ => false,
        }
    }

    /// Tests if a line starts here that can only be a statement.
    fn starts_statement(&self) -> bool {
        if !self.starts_line(self.at) {
            return false;
        }
        match self.kind() {
            TokenKind::Name => self.kind_ahead(1) == TokenKind::Sign(b':') || select::is_known_root(self.text_of(self.token())),
            TokenKind::Dotted | TokenKind::Sign(b'@' | b'{') | TokenKind::Dwarf => true,
            TokenKind::Imm(_) | TokenKind::Text | TokenKind::Sign(_) | TokenKind::End => false,
        }
    }

    /// Returns the number of braces opened and not closed since a token.
    fn open_braces(&self, start: usize) -> usize {
        self.tokens[start..self.at].iter().fold(0usize, |depth, token| match token.kind {
            TokenKind::Sign(b'{') => depth + 1,
            TokenKind::Sign(b'}') => depth.saturating_sub(1),
            _ => depth,
        })
    }

    /// Recovers from a mistake in a statement that began at `start`. Continues after its `;`, or before its
    /// end or the next statement.
    pub(super) fn recover_statement(&mut self, start: usize) {
        let mut depth = self.open_braces(start);
        loop {
            if self.at > start && self.starts_statement() || self.starts_item() {
                return;
            }
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Sign(b'{') => depth += 1,
                TokenKind::Sign(b'}') if depth > 0 => depth -= 1,
                // A brace in the middle of operands closes a vector that was never opened.
                TokenKind::Sign(b'}') if self.kind_ahead(1) == TokenKind::Sign(b',') => {}
                TokenKind::Sign(b'}') => return,
                TokenKind::Sign(b';') => {
                    self.bump();
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Recovers from a mistake in a top-level item that began at `start`. Continues after a declaration's `;`
    /// or a function's body, or before the next item.
    pub(super) fn recover_item(&mut self, start: usize) {
        let function = self.tokens[start..self.at.max(start + 1).min(self.tokens.len())]
            .iter()
            .any(|token| token.kind == TokenKind::Dotted && matches!(self.word_of(*token), "entry" | "func" | "section"));
        let mut depth = self.open_braces(start);
        loop {
            if self.at > start && self.starts_line(self.at) && (self.starts_item() || depth == 0 && self.starts_directive()) {
                return;
            }
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Sign(b'{') => depth += 1,
                TokenKind::Sign(b'}') => {
                    depth = depth.saturating_sub(1);
                    // The `;` of a variable follows its initialiser.
                    if depth == 0 && self.kind_ahead(1) != TokenKind::Sign(b';') {
                        self.bump();
                        return;
                    }
                }
                TokenKind::Sign(b';') if depth == 0 || !function => {
                    self.bump();
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Tests if a top-level directive comes next.
    fn starts_directive(&self) -> bool {
        self.dotted().is_some_and(|word| super::DIRECTIVES.contains(&word))
    }
}

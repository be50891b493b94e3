//! Parser of initialisers (manual: "Initializers").

use super::lexer::{TokenKind, shorten};
use super::{MAX_DEPTH, ParseResult, Parser, codes};
use crate::inst::{Imm, Symbol};
use crate::module::Init;
use crate::select::fit_float;
use crate::types::{Type, TypeKind};
use broadloom_diag::Diagnostic;

impl Parser<'_> {
    /// Parses the initialiser after the `=` of a variable.
    pub(super) fn initialiser(&mut self, depth: usize) -> ParseResult<Init> {
        if depth > MAX_DEPTH {
            let place = self.here();
            let message = format!("an initialiser nested deeper than {MAX_DEPTH} levels");
            return Err(self.report(Diagnostic::error(codes::LIMIT, message).at(place, "too deep")));
        }
        if self.eat(b'{') {
            let mut list = vec![];
            if self.eat(b'}') {
                return Ok(Init::List(list));
            }
            if self.kind() == TokenKind::Name && self.kind_ahead(1) == TokenKind::Sign(b'=') {
                return self.settings();
            }
            loop {
                list.push(self.initialiser(depth + 1)?);
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect_end(b'}')?;
            return Ok(Init::List(list));
        }
        if self.kind() == TokenKind::Text {
            let place = self.here();
            let diagnostic = Diagnostic::error(codes::BAD_INITIALISER, "a string cannot initialise a variable");
            return Err(self.report(diagnostic.at(place, "a string").help("write its bytes: `{104, 101, 121, 0}` of type `.b8`")));
        }
        if self.kind() == TokenKind::Name && self.text_of(self.token()) != "WARP_SZ" {
            return self.address_initialiser(None);
        }
        // `0xFF00(name)` is one byte of an address.
        if let (TokenKind::Imm(imm), TokenKind::Sign(b'(')) = (self.kind(), self.kind_ahead(1))
            && let Some(mask) = imm.integer_bits()
        {
            self.bump();
            self.bump();
            let init = self.address_initialiser(Some(mask))?;
            self.expect(b')')?;
            return Ok(init);
        }
        Ok(Init::Imm(self.expression()?))
    }

    fn address_initialiser(&mut self, mask: Option<u64>) -> ParseResult<Init> {
        let (mut name, mut span) = self.expect_name("a name")?;
        let generic = name == "generic" && self.is_sign(b'(');
        if generic {
            self.bump();
            (name, span) = self.expect_name("a name")?;
        }
        // A variable of the module may contain its own address.
        let own = || (self.declaring == Some(name)).then(|| Symbol::Var(self.module.variables.next_key()));
        let symbol = self.globals.get(name).copied().or_else(own);
        if symbol.is_none() {
            let message = format!("`{}` is not declared", shorten(name));
            return Err(self.report(
                Diagnostic::error(codes::UNDECLARED, message).at(span, "an initialiser can use names declared before it"),
            ));
        }
        let mut offset = 0;
        if !generic && (self.is_sign(b'+') || self.is_sign(b'-')) {
            offset = self.signed_offset()?;
        }
        if generic {
            self.expect(b')')?;
            if self.is_sign(b'+') || self.is_sign(b'-') {
                offset = self.signed_offset()?;
            }
        }
        symbol.map(|symbol| Init::Address { symbol, offset, generic, mask }).ok_or(super::ReportedError)
    }

    /// Parses the settings `addr_mode_0 = wrap, filter_mode = linear }` of a texture, sampler or surface.
    fn settings(&mut self) -> ParseResult<Init> {
        let mut list = vec![];
        loop {
            let (name, _) = self.expect_name("the name of a setting")?;
            self.expect(b'=')?;
            let value = match self.kind() {
                TokenKind::Name => self.expect_name("a value")?.0.to_owned(),
                _ => self.expect_integer("a value")?.to_string(),
            };
            list.push((name.to_owned(), value));
            if !self.eat(b',') {
                break;
            }
        }
        self.expect_end(b'}')?;
        Ok(Init::Settings(list))
    }
}

impl Init {
    /// Converts an initialiser to the variable's type. `.f32 x = 1.0` is written with a double, and empty
    /// braces are settings if the variable is a sampler.
    fn fitted_to(self, ty: Type) -> Init {
        match self {
            Init::Imm(imm) => Init::Imm(fit_float(ty, imm)),
            Init::List(list) if list.is_empty() && ty.kind() == TypeKind::Opaque => Init::Settings(vec![]),
            Init::List(list) => Init::List(list.into_iter().map(|init| init.fitted_to(ty)).collect()),
            Init::Address { .. } | Init::Settings(_) => self,
        }
    }

    pub(super) fn fitted(self, ty: Type) -> Init {
        // Untyped variables of 32 and 64 bits accept floats too.
        self.fitted_to(match ty {
            Type::B32 => Type::F32,
            Type::B64 => Type::F64,
            ty => ty,
        })
    }

    /// Tests if all values are zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Init::Imm(Imm::Int(0) | Imm::F32(0) | Imm::F64(0)) => true,
            Init::Imm(_) | Init::Address { .. } | Init::Settings(_) => false,
            Init::List(list) => list.iter().all(Init::is_zero),
        }
    }
}

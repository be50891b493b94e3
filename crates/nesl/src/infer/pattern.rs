//! Patterns.

use super::{Infer, Ty};
use crate::codes;
use crate::core;
use crate::infer::unify::Node;
use crate::syntax::{self, Name, Word};
use broadloom_diag::{Diagnostic, Span};

impl Infer<'_> {
    /// Brings the names of a pattern into scope and returns the type of the values that it matches.
    pub(super) fn pattern(&mut self, pattern: syntax::PatternId) -> (core::PatternId, Ty) {
        let mut names = vec![];
        self.pattern_in(pattern, &mut names)
    }

    fn pattern_in(&mut self, pattern: syntax::PatternId, names: &mut Vec<(Name, Span)>) -> (core::PatternId, Ty) {
        let ast = self.ast.clone();
        let span = ast.pattern_spans[pattern];
        match &ast.patterns[pattern] {
            syntax::Pattern::Name(name) | syntax::Pattern::Optional(name, _) => {
                if let Some((_, first)) = names.iter().find(|(known, _)| known == name && name.as_str() != "_") {
                    self.diagnostics.push(
                        Diagnostic::error(codes::REPEATED, format!("`{name}` occurs twice in one pattern"))
                            .at(span, "here again")
                            .label(*first, "first here")
                            .help("give the parts different names; parts that are not needed can all be called `_`"),
                    );
                }
                names.push((name.clone(), span));
                let ty = self.tys.any();
                let local = self.bind_local(name.clone(), ty);
                (self.frame().body.patterns.push(core::Pattern::Local(local)), ty)
            }
            syntax::Pattern::Pair(first, rest) => {
                let (first, first_ty) = self.pattern_in(*first, names);
                let (rest, rest_ty) = self.pattern_in(*rest, names);
                let ty = self.tys.add(Node::Pair(first_ty, rest_ty));
                (self.frame().body.patterns.push(core::Pattern::Pair(first, rest)), ty)
            }
            syntax::Pattern::Data(name, content) => self.data_pattern(name, *content, span, names),
            syntax::Pattern::Broken => {
                let ty = self.tys.add(Node::Error);
                let local = self.bind_local(Word::Let.text().into(), ty);
                (self.frame().body.patterns.push(core::Pattern::Local(local)), ty)
            }
        }
    }

    fn data_pattern(
        &mut self,
        name: &Name,
        content: syntax::PatternId,
        span: Span,
        names: &mut Vec<(Name, Span)>,
    ) -> (core::PatternId, Ty) {
        let (pattern, content_ty) = self.pattern_in(content, names);
        let Some(&datatype) = self.env.type_names.get(name) else {
            let error = Diagnostic::error(codes::BAD_PATTERN, format!("`{name}` is not a datatype"))
                .at(span, "a pattern with a call takes a value of a datatype apart")
                .help(format!("define it first, as in `datatype {name}(int, int);`, or bind a plain name"));
            return (pattern, self.report(error));
        };
        let data = &self.env.datatypes[datatype];
        let (expected, classes) = (data.content, data.parameters.clone());
        let variables: Vec<Ty> = classes.iter().map(|&class| self.tys.var(class)).collect();
        let expected = self.tys.import(&self.env.types, expected, &variables);
        if let Err(clash) = self.tys.unify(expected, content_ty) {
            let (found, wanted) = (self.show(content_ty), self.show(expected));
            let error = Diagnostic::error(codes::MISMATCH, format!("the pattern does not fit the datatype `{name}`"))
                .at(span, format!("the datatype holds `{wanted}`, this pattern takes `{found}` apart"));
            let error = self.advise(error, clash);
            self.report(error);
        }
        (pattern, self.tys.add(Node::Data(datatype, variables)))
    }
}

//! Composite streams: connects the parts that a body created by tapes.

use super::builder::{Builder, OpenEnd, OpenStream};
use super::instance::tape_layout;
use super::site::{CompositeParts, CompositeSite};
use crate::language::codes;
use crate::language::core::{Composite, FunctionId, Layout, StreamId, Type, Value};
use crate::language::eval::{Code, Stop, Weights, convert};
use crate::language::graph::{NodeId, NodeKind, Tape, TapeId, Tree};
use broadloom_diag::{Diagnostic, Span};

impl Builder<'_> {
    pub(super) fn composite(
        &mut self,
        id: StreamId,
        composite: Composite,
        body: FunctionId,
        params: &[Value],
    ) -> Result<OpenStream, Stop> {
        let program = self.program;
        let stream = &program.streams[id];
        let statics = self.statics.clone();
        let mut site = CompositeSite { builder: self, parts: CompositeParts::default() };
        let mut code = Code::new(program, params, vec![], statics, &mut site);
        let types = match &stream.types {
            Some((input, output)) => Some((tape_layout(&mut code, input)?, tape_layout(&mut code, output)?)),
            None => None,
        };
        code.enter(body, vec![])?;
        let parts = std::mem::take(&mut code.world.parts);
        let built = match composite {
            Composite::Pipeline => self.pipeline(parts, stream.span),
            Composite::SplitJoin => self.splitjoin(parts, &stream.name, stream.span),
            Composite::FeedbackLoop => {
                let closed = types.as_ref().map_or((false, false), |(input, output)| (input.is_none(), output.is_none()));
                self.feedbackloop(parts, &stream.name, stream.span, closed)
            }
        }?;
        let built = OpenStream { name: stream.name.to_string(), ..built };
        // The original compiler drops the declared types of anonymous composite streams. Its programs rely on
        // that.
        let is_anonymous = matches!(&*stream.name, "pipeline" | "splitjoin" | "feedbackloop");
        if let Some((input, output)) = types.filter(|_| !is_anonymous) {
            self.check_declared(&built, &input, &built.input, ("input", "takes"), stream.span)?;
            self.check_declared(&built, &output, &built.output, ("output", "produces"), stream.span)?;
        }
        Ok(built)
    }

    fn show(&self, layout: Option<&Layout>) -> String {
        layout.map_or_else(|| "void".to_owned(), |layout| layout.show(&self.program.structs))
    }

    fn check_declared(
        &self,
        built: &OpenStream,
        declared: &Option<Layout>,
        found: &Option<OpenEnd>,
        words: (&str, &str),
        span: Span,
    ) -> Result<(), Stop> {
        let layout = found.as_ref().map(|end| &end.layout);
        if declared.as_ref() == layout {
            return Ok(());
        }
        let (declared, found_type) = (self.show(declared.as_ref()), self.show(layout));
        let message = format!("`{}` is declared with {} type {declared}, but it {} {found_type}", built.name, words.0, words.1);
        let mut error = Diagnostic::error(codes::TAPE_TYPE, message).at(span, "");
        if let Some(end) = found {
            let node = &self.nodes[end.node];
            error = error.label(node.span, format!("`{}` {} {found_type}", plain(&node.name), words.1));
        }
        Err(Stop::Error(Box::new(error.help("change the declared type, or the stream at that end"))))
    }

    /// Connects an output to an input by a tape.
    fn connect(&mut self, from: &OpenEnd, to: &OpenEnd, enqueued: Vec<Value>, is_back_edge: bool) -> TapeId {
        let layout = from.layout.clone();
        let tape = self.tapes.push(Tape { layout, from: (from.node, from.port), to: (to.node, to.port), enqueued, is_back_edge });
        self.nodes[from.node].outputs[from.port] = tape;
        self.nodes[to.node].inputs[to.port] = tape;
        tape
    }

    /// Checks that two streams can follow each other, and connects them.
    fn join_ends(&mut self, first: (&OpenStream, Span), second: (&OpenStream, Span)) -> Result<(), Stop> {
        match (&first.0.output, &second.0.input) {
            (None, None) => Ok(()),
            (Some(from), Some(to)) if from.layout == to.layout => {
                self.connect(from, to, vec![], false);
                Ok(())
            }
            (from, to) => {
                let from_type = self.show(from.as_ref().map(|end| &end.layout));
                let to_type = self.show(to.as_ref().map(|end| &end.layout));
                let (a, b) = (&first.0.name, &second.0.name);
                let message = format!("`{a}` produces {from_type}, but `{b}` behind it takes {to_type}");
                let error = Diagnostic::error(codes::TAPE_TYPE, message).at(second.1, format!("takes {to_type}"));
                let error = error.label(first.1, format!("produces {from_type}"));
                Err(Stop::Error(Box::new(error.help("a tape carries one type; put a filter between them that converts"))))
            }
        }
    }

    fn pipeline(&mut self, parts: CompositeParts, span: Span) -> Result<OpenStream, Stop> {
        let children = parts.children;
        if children.is_empty() {
            return Err(
                Stop::error(codes::BAD_SHAPE, "the pipeline has no streams in it", span).help("`add` at least one stream")
            );
        }
        for pair in children.windows(2) {
            self.join_ends((&pair[0].0, pair[0].1), (&pair[1].0, pair[1].1))?;
        }
        let input = children.first().and_then(|(built, _)| built.input.clone());
        let output = children.last().and_then(|(built, _)| built.output.clone());
        let trees = children.into_iter().map(|(built, _)| built.tree).collect();
        Ok(OpenStream { tree: Tree::Pipeline(trees), input, output, name: String::new() })
    }

    /// Returns the weights of a splitter or joiner, one for each branch. A branch without that end has weight
    /// 0.
    fn branch_weights(&self, weights: &Weights, ends: &[Option<&OpenEnd>], word: &str, span: Span) -> Result<Vec<u32>, Stop> {
        let each = match weights {
            Weights::Duplicate => vec![1; ends.len()],
            Weights::Even(weight) => vec![*weight; ends.len()],
            Weights::Each(each) if each.len() == ends.len() => each.clone(),
            Weights::Each(each) => {
                let message = format!("the {word} has {} weights, but there are {} branches", each.len(), ends.len());
                let help = "give one weight for each branch, or one for all of them: `roundrobin(1)`";
                return Err(Stop::error(codes::BAD_SHAPE, message, span).help(help));
            }
        };
        let weight = |(weight, end): (u32, &Option<&OpenEnd>)| if end.is_some() { weight } else { 0 };
        Ok(each.into_iter().zip(ends).map(weight).collect())
    }

    /// Checks that all branches with an end carry the same type, and returns it.
    fn branch_layout(
        &self,
        children: &[(OpenStream, Span)],
        ends: &[Option<&OpenEnd>],
        does: &str,
    ) -> Result<Option<Layout>, Stop> {
        let mut first: Option<(&Layout, usize)> = None;
        for (index, end) in ends.iter().enumerate() {
            let Some(end) = end else { continue };
            match first {
                None => first = Some((&end.layout, index)),
                Some((layout, _)) if *layout == end.layout => {}
                Some((layout, other)) => {
                    let (a, b) = (self.show(Some(layout)), self.show(Some(&end.layout)));
                    let (name, other_name) = (&children[index].0.name, &children[other].0.name);
                    let message = format!("the branches of the splitjoin differ: `{other_name}` {does} {a}, `{name}` {does} {b}");
                    let error = Diagnostic::error(codes::TAPE_TYPE, message).at(children[index].1, format!("{does} {b}"));
                    let error = error.label(children[other].1, format!("{does} {a}"));
                    return Err(Stop::Error(Box::new(error.help("convert the items in a filter, so that all branches agree"))));
                }
            }
        }
        Ok(first.map(|(layout, _)| layout.clone()))
    }

    fn splitjoin(&mut self, parts: CompositeParts, name: &str, place: Span) -> Result<OpenStream, Stop> {
        let missing = |word: &str, example: &str| {
            let error = Diagnostic::error(codes::BAD_SHAPE, format!("the splitjoin has no `{word}`")).at(place, "");
            Stop::Error(Box::new(error.help(format!("add `{example}`"))))
        };
        let (split, split_span) = parts.split.ok_or_else(|| missing("split", "split duplicate;"))?;
        let (join, join_span) = parts.join.ok_or_else(|| missing("join", "join roundrobin;"))?;
        let children = parts.children;
        if children.is_empty() {
            return Err(Stop::error(codes::BAD_SHAPE, "the splitjoin has no branches", place).help("`add` at least one branch"));
        }
        let inputs: Vec<Option<&OpenEnd>> = children.iter().map(|(built, _)| built.input.as_ref()).collect();
        let outputs: Vec<Option<&OpenEnd>> = children.iter().map(|(built, _)| built.output.as_ref()).collect();
        let split_weights = self.branch_weights(&split, &inputs, "splitter", split_span)?;
        let join_weights = self.branch_weights(&join, &outputs, "joiner", join_span)?;
        let input = self.branch_layout(&children, &inputs, "takes")?;
        let output = self.branch_layout(&children, &outputs, "produces")?;
        let starves = |ends: &[Option<&OpenEnd>], weights: &[u32], word: &str, gets: &str, span: Span| {
            for ((end, weight), (built, place)) in ends.iter().zip(weights).zip(&children) {
                if end.is_some() && *weight == 0 {
                    let message = format!("the {word} {gets} the branch `{}`: its weight is 0", built.name);
                    let error = Diagnostic::error(codes::UNBALANCED, message).at(span, "").label(*place, "this branch");
                    let help = "give the branch a weight, or make that end of it `void`";
                    return Err(Stop::Error(Box::new(error.help(help))));
                }
            }
            Ok(())
        };
        starves(&inputs, &split_weights, "splitter", "gives no items to", split_span)?;
        starves(&outputs, &join_weights, "joiner", "takes no items from", join_span)?;
        let kept = |weights: Vec<u32>| weights.into_iter().filter(|weight| *weight > 0).collect::<Vec<u32>>();
        let (split_weights, join_weights) = (kept(split_weights), kept(join_weights));
        let mut built = OpenStream { tree: Tree::Pipeline(vec![]), input: None, output: None, name: String::new() };
        let mut splitter = None;
        if let Some(layout) = input {
            let count = split_weights.len();
            let kind = if matches!(split, Weights::Duplicate) { NodeKind::Duplicate } else { NodeKind::Split(split_weights) };
            let node = self.node(&format!("{name}.split"), kind, (1, count), split_span)?;
            let ends: Vec<OpenEnd> = inputs.into_iter().flatten().cloned().collect();
            for (port, to) in ends.iter().enumerate() {
                self.connect(&OpenEnd { node, port, layout: layout.clone() }, to, vec![], false);
            }
            built.input = Some(OpenEnd { node, port: 0, layout });
            splitter = Some(node);
        }
        let mut joiner = None;
        if let Some(layout) = output {
            let count = join_weights.len();
            let node = self.node(&format!("{name}.join"), NodeKind::Join(join_weights), (count, 1), join_span)?;
            let ends: Vec<OpenEnd> = outputs.into_iter().flatten().cloned().collect();
            for (port, from) in ends.iter().enumerate() {
                self.connect(from, &OpenEnd { node, port, layout: layout.clone() }, vec![], false);
            }
            built.output = Some(OpenEnd { node, port: 0, layout });
            joiner = Some(node);
        }
        let trees = children.into_iter().map(|(built, _)| built.tree).collect();
        Ok(OpenStream { tree: Tree::SplitJoin(splitter, trees, joiner), ..built })
    }

    /// Connects a feedbackloop. `closed` says that its input or output is declared void, regardless of the
    /// weights.
    fn feedbackloop(&mut self, parts: CompositeParts, name: &str, place: Span, closed: (bool, bool)) -> Result<OpenStream, Stop> {
        let missing = |word: &str| {
            let error = Diagnostic::error(codes::BAD_SHAPE, format!("the feedbackloop has no `{word}`")).at(place, "");
            Stop::Error(Box::new(error.help("it needs one each of `join`, `body`, `loop` and `split`")))
        };
        let (split, split_span) = parts.split.ok_or_else(|| missing("split"))?;
        let (join, join_span) = parts.join.ok_or_else(|| missing("join"))?;
        let (body, body_span) = parts.body.ok_or_else(|| missing("body"))?;
        let (back, back_span) = parts.back.ok_or_else(|| missing("loop"))?;
        let need = |end: &Option<OpenEnd>, what: &str, span: Span| {
            let message = format!("the {what} of a feedbackloop cannot be void");
            let advice = "items go round through it; give it a type";
            end.clone().ok_or_else(|| Stop::error(codes::BAD_SHAPE, message, span).help(advice))
        };
        let body_in = need(&body.input, "input of the body", body_span)?;
        let body_out = need(&body.output, "output of the body", body_span)?;
        let back_in = need(&back.input, "input of the loop stream", back_span)?;
        let back_out = need(&back.output, "output of the loop stream", back_span)?;
        for (from, to, words, spans) in [
            (&body_out, &back_in, ("the body produces", "the loop stream takes"), (body_span, back_span)),
            (&back_out, &body_in, ("the loop stream produces", "the body takes"), (back_span, body_span)),
        ] {
            if from.layout != to.layout {
                let (a, b) = (self.show(Some(&from.layout)), self.show(Some(&to.layout)));
                let message = format!("{} {a}, but {} {b}", words.0, words.1);
                let error = Diagnostic::error(codes::TAPE_TYPE, message).at(spans.1, format!("takes {b}"));
                let error = error.label(spans.0, format!("produces {a}"));
                return Err(Stop::Error(Box::new(error.help("items return to the body: both have to carry the same type"))));
            }
        }
        let both = [Some(&back_out), Some(&back_out)];
        let mut join_weights = self.branch_weights(&join, &both, "joiner of a feedbackloop", join_span)?;
        let mut split_weights = self.branch_weights(&split, &both, "splitter of a feedbackloop", split_span)?;
        if closed.0 {
            join_weights[0] = 0;
        }
        if closed.1 {
            split_weights[0] = 0;
        }
        if matches!(join, Weights::Duplicate)
            || join_weights[1] == 0
            || (split_weights[1] == 0 && !matches!(split, Weights::Duplicate))
        {
            let error = Diagnostic::error(codes::UNBALANCED, "nothing goes round in the feedbackloop").at(place, "");
            let error = error.help("the second weight of `join` and of `split` belongs to the loop stream; it has to be above 0");
            return Err(Stop::Error(Box::new(error)));
        }
        let (enters, leaves) = (join_weights[0] > 0, split_weights[0] > 0);
        let kept = |weights: Vec<u32>| weights.into_iter().filter(|weight| *weight > 0).collect::<Vec<u32>>();
        let (back_port, loop_port) = (usize::from(enters), usize::from(leaves));
        let joiner = self.node(&format!("{name}.join"), NodeKind::Join(kept(join_weights)), (back_port + 1, 1), join_span)?;
        let kind = if matches!(split, Weights::Duplicate) { NodeKind::Duplicate } else { NodeKind::Split(kept(split_weights)) };
        let splitter = self.node(&format!("{name}.split"), kind, (1, loop_port + 1), split_span)?;
        let end = |node: NodeId, port: usize, layout: &Layout| OpenEnd { node, port, layout: layout.clone() };
        let enqueued = self.enqueued(parts.enqueued, &back_out.layout)?;
        self.connect(&end(joiner, 0, &body_in.layout), &body_in, vec![], false);
        self.connect(&body_out, &end(splitter, 0, &body_out.layout), vec![], false);
        self.connect(&end(splitter, loop_port, &back_in.layout), &back_in, vec![], false);
        self.connect(&back_out, &end(joiner, back_port, &back_out.layout), enqueued, true);
        let input = enters.then(|| end(joiner, 0, &body_in.layout));
        let output = leaves.then(|| end(splitter, 0, &body_out.layout));
        let tree = Tree::FeedbackLoop(joiner, Box::new(body.tree), splitter, Box::new(back.tree));
        Ok(OpenStream { tree, input, output, name: String::new() })
    }

    /// Converts enqueued items to the type of their tape.
    fn enqueued(&self, items: Vec<(Value, Span)>, layout: &Layout) -> Result<Vec<Value>, Stop> {
        let mut converted = vec![];
        for (value, span) in items {
            let fits = matches!(
                (&value, layout),
                (Value::Int(0 | 1), Layout::Scalar(Type::Bit))
                    | (Value::Int(_), Layout::Scalar(Type::Int))
                    | (Value::Bit(_), Layout::Scalar(Type::Bit | Type::Int))
                    | (
                        Value::Bit(_) | Value::Int(_) | Value::Float(_),
                        Layout::Scalar(Type::Float | Type::Double | Type::Complex)
                    )
                    | (Value::Double(_), Layout::Scalar(Type::Double))
                    | (Value::Complex(..), Layout::Scalar(Type::Complex))
            );
            let same = match (&value, layout) {
                (Value::Boolean(_), Layout::Scalar(Type::Boolean)) => true,
                (Value::Array(_) | Value::Struct(_), Layout::Array(..) | Layout::Struct(..)) => layout.holds(&value),
                _ => false,
            };
            if same {
                converted.push(value);
            } else if let (true, Some(value)) = (fits, convert(&value, &layout.ty())) {
                converted.push(value);
            } else {
                let ty = self.show(Some(layout));
                let message = format!("the enqueued value does not fit the tape, which carries {ty}");
                return Err(
                    Stop::error(codes::TAPE_TYPE, message, span).help("the loop stream produces this tape; enqueue its type")
                );
            }
        }
        Ok(converted)
    }
}

/// Returns the name of a node without its number.
fn plain(name: &str) -> &str {
    name.rsplit_once('#').map_or(name, |(name, _)| name)
}

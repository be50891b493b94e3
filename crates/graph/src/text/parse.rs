//! Parser: from text to nodes.

use super::contents::{elements, value};
use super::vocabulary::Vocabulary;
use super::{BAD_NAME, BAD_SETTING, MISFIT, REFUSED, elementwise};
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Expression, Node, State};
use crate::expr::op::Op;
use crate::expr::parsed_call::{ParsedCall, ParsedSetting, RawValue};
use crate::expr::shape::Shape;
use crate::expr::view::{AxisMap, View};
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Sources, Span};
use broadloom_scalar::text::{Line, Lines, Scanner, function};
use broadloom_scalar::{Function, Lanes, Type};
use broadloom_skeleton::{Boundary, Rule};
use std::collections::HashMap;

type ParseResult<T> = std::result::Result<T, Box<Diagnostic>>;

/// Parsed graph.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Results, with their names.
    pub outputs: Vec<(String, Node)>,
}

/// Reads a graph. Its inputs are uploaded to the device of the context; nothing is computed.
pub fn parse(
    sources: &Sources,
    source: SourceId,
    context: &Context,
    vocabulary: &Vocabulary,
) -> std::result::Result<Graph, Diagnostics> {
    let mut lines = Lines::new(sources, source);
    let mut parser = Parser { context, vocabulary, nodes: HashMap::new(), functions: HashMap::new(), outputs: vec![] };
    let mut wrong = Diagnostics::new();
    while let Some(line) = lines.peek() {
        if let Err(error) = parser.item(&mut lines, &line) {
            wrong.push(*error);
            if wrong.is_full() {
                break;
            }
        }
    }
    if wrong.is_empty() && parser.outputs.is_empty() {
        let nothing = Diagnostic::error(BAD_NAME, "no line says what the results are").at(lines.end(), "the end of the text");
        wrong.push(nothing.help("add a line `output x`"));
    }
    if wrong.is_empty() { Ok(Graph { outputs: parser.outputs }) } else { Err(wrong) }
}

/// Node of a name; `None` if its line has an error.
type NamedNode = Option<Node>;

struct Parser<'t> {
    context: &'t Context,
    vocabulary: &'t Vocabulary,
    nodes: HashMap<&'t str, NamedNode>,
    functions: HashMap<&'t str, Option<Function>>,
    outputs: Vec<(String, Node)>,
}

/// Name on the left side, with its stated type and shape.
struct Target<'t> {
    name: &'t str,
    span: Span,
    stated: Option<(Type, Shape)>,
}

/// Returns the diagnostic for an error of an operation, at its line.
fn refused(error: &Error, span: Span) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(REFUSED, error.to_string()).at(span, "here"))
}

impl<'t> Parser<'t> {
    /// Parses a function, a node, or the results.
    fn item(&mut self, lines: &mut Lines<'t>, line: &Line<'t>) -> ParseResult<()> {
        let mut scanner = line.scan();
        if scanner.eat_word("fn") {
            let name = scanner.word();
            let read = function(lines);
            // Unread lines of a function still belong to it.
            while lines.peek().is_some_and(|next| next.indent > line.indent) {
                lines.next();
            }
            let Some(name) = name else { return read.map(|_| ()) };
            let twice = self.functions.contains_key(name);
            let known = self.functions.entry(name).or_default();
            *known = Some(read?);
            return match twice {
                false => Ok(()),
                true => Err(Box::new(Diagnostic::error(BAD_NAME, format!("a second function `{name}`")).at(line.span(), "here"))),
            };
        }
        lines.next();
        if scanner.eat_word("output") {
            loop {
                let (name, node) = self.node(&mut scanner)?;
                self.outputs.extend(node.map(|node| (name.to_owned(), node)));
                if !scanner.eat(",") {
                    return scanner.finish();
                }
            }
        }
        let targets = self.targets(&mut scanner)?;
        let made = self.right_side(&mut scanner, line, &targets);
        let made = made.and_then(|nodes| self.bind(&targets, nodes, line));
        if made.is_err() {
            // Users of these nodes are not reported as errors.
            for target in &targets {
                self.nodes.entry(target.name).or_insert(None);
            }
        }
        made
    }

    /// Parses the names that a line defines.
    fn targets(&mut self, scanner: &mut Scanner<'t>) -> ParseResult<Vec<Target<'t>>> {
        let mut targets = vec![];
        loop {
            let start = scanner.at();
            let name = scanner.name("the name of a node")?;
            let span = scanner.since(start);
            let is_word = name == "input" || name == "fn";
            if is_word || self.nodes.contains_key(name) && name != "_" {
                let what = if is_word { "a word of the language" } else { "another node already" };
                return Err(Box::new(Diagnostic::error(BAD_NAME, format!("`{name}` is {what}")).at(span, "here")));
            }
            let stated = match scanner.eat(":") {
                false => None,
                true => {
                    let ty = scanner.ty()?;
                    scanner.expect("[")?;
                    let extents = scanner.list("]", |scanner| scanner.integer::<usize>("an extent"))?;
                    Some((ty, Shape::from(extents)))
                }
            };
            targets.push(Target { name, span, stated });
            if !scanner.eat(",") {
                scanner.expect("=")?;
                return Ok(targets);
            }
        }
    }

    /// Binds nodes to names, if their types and shapes are as stated.
    fn bind(&mut self, targets: &[Target<'t>], nodes: Option<Vec<Node>>, line: &Line<'t>) -> ParseResult<()> {
        let Some(nodes) = nodes else {
            self.nodes.extend(targets.iter().map(|target| (target.name, None)));
            return Ok(());
        };
        if targets.len() > nodes.len() {
            let message = format!("the operation gives {} results, not {}", nodes.len(), targets.len());
            return Err(Box::new(Diagnostic::error(MISFIT, message).at(line.span(), "here")));
        }
        for (target, node) in targets.iter().zip(nodes) {
            if let Some((ty, shape)) = target.stated.as_ref().filter(|(ty, shape)| *ty != node.ty() || shape != node.shape()) {
                let message = format!("`{}` is {}{}, not {ty}{shape}", target.name, node.ty(), node.shape());
                return Err(Box::new(Diagnostic::error(MISFIT, message).at(target.span, "stated here")));
            }
            if target.name != "_" {
                self.nodes.insert(target.name, Some(node));
            }
        }
        Ok(())
    }

    /// Parses the name of a node and returns the node.
    fn node(&self, scanner: &mut Scanner<'t>) -> ParseResult<(&'t str, NamedNode)> {
        let start = scanner.at();
        let name = scanner.name("the name of a node")?;
        let unknown =
            || Box::new(Diagnostic::error(BAD_NAME, format!("there is no node `{name}`")).at(scanner.since(start), "here"));
        self.nodes.get(name).cloned().map(|node| (name, node)).ok_or_else(unknown)
    }

    /// Parses the operation of a line and returns its results; `None` if the line of an input has an error.
    fn right_side(
        &mut self,
        scanner: &mut Scanner<'t>,
        line: &Line<'t>,
        targets: &[Target<'t>],
    ) -> ParseResult<Option<Vec<Node>>> {
        let stated = || targets.first().and_then(|target| target.stated.clone());
        let needed = || {
            let message = "the type and the shape of this node must be stated, such as `x: f32[4, 4] = …`";
            Box::new(Diagnostic::error(MISFIT, message).at(line.span(), "here"))
        };
        if scanner.eat_word("input") {
            let (ty, shape) = stated().ok_or_else(needed)?;
            let bytes = elements(scanner, ty, &shape)?;
            scanner.finish()?;
            let node = Node::upload(self.context, ty, shape, &bytes).map_err(|error| refused(&error, line.span()))?;
            return Ok(Some(vec![node]));
        }
        let mut before = scanner.clone();
        if let Some(name) = before.word().filter(|_| !before.sees("(")) {
            *scanner = before;
            return self.between(name, scanner, line);
        }
        let function = scanner.eat("@");
        let start = scanner.at();
        let name = scanner.name("an operation")?;
        let span = scanner.since(start);
        scanner.expect("(")?;
        if name == "fill" && !function {
            let (ty, shape) = stated().ok_or_else(needed)?;
            return self.fill(scanner, line, ty, shape);
        }
        let (mut inputs, mut settings, mut maps) = (vec![], vec![], None);
        scanner.list(")", |scanner| {
            let start = scanner.at();
            let mut ahead = scanner.clone();
            let key = ahead.word().filter(|_| ahead.sees(":"));
            let Some(key) = key else {
                inputs.push(self.node(scanner)?.1);
                return Ok(());
            };
            *scanner = ahead;
            scanner.expect(":")?;
            if key == "at" && name == "view" {
                scanner.expect("[")?;
                maps = Some(scanner.list("]", axis_map)?);
                return Ok(());
            }
            let value = self.setting(scanner)?;
            settings.push(ParsedSetting { key, value, span: scanner.since(start) });
            Ok(())
        })?;
        scanner.finish()?;
        let Some(inputs) = inputs.into_iter().collect::<Option<Vec<Node>>>() else { return Ok(None) };
        let stated = targets.iter().map(|target| target.stated.clone()).collect();
        let call = ParsedCall::new(self.context, name, inputs, settings, stated);
        let made = match function {
            true => {
                let unknown = || Box::new(Diagnostic::error(BAD_NAME, format!("there is no function `{name}`")).at(span, "here"));
                let Some(function) = self.functions.get(name).ok_or_else(unknown)? else { return Ok(None) };
                let wanted = function.parameters().len();
                match call.inputs.len() {
                    count if count == wanted && count > 0 => Node::call(function, &call.inputs()),
                    0 => Err(call.error("a function of elements is called with an array at least")),
                    count => Err(call.error(format!("expected {wanted} inputs, not {count}"))),
                }
            }
            false => self.operation(&call, maps.as_deref(), span)?,
        };
        let nodes = made.map_err(|error| match call.blamed() {
            Some(setting) => Box::new(Diagnostic::error(BAD_SETTING, error.to_string()).at(setting, "this setting")),
            None => refused(&error, line.span()),
        })?;
        match call.unused() {
            None => Ok(Some(nodes)),
            Some(setting) => {
                let message = format!("`{name}` has no setting `{}`", setting.key);
                Err(Box::new(Diagnostic::error(BAD_SETTING, message).at(setting.span, "here")))
            }
        }
    }

    /// Parses an infix operation. The left input is read already.
    fn between(&self, left: &'t str, scanner: &mut Scanner<'t>, line: &Line<'t>) -> ParseResult<Option<Vec<Node>>> {
        let unknown =
            || Box::new(Diagnostic::error(BAD_NAME, format!("there is no node `{left}`")).at(line.span(), "in this line"));
        let left = self.nodes.get(left).ok_or_else(unknown)?;
        let Some(operator) = elementwise::operators().into_iter().find(|operator| scanner.eat(operator)) else {
            return Err(scanner.unexpected("`(` or an operator"));
        };
        let right = self.node(scanner)?.1;
        scanner.finish()?;
        let (Some(left), Some(right), Some(op)) = (left, right, elementwise::between(operator)) else { return Ok(None) };
        Node::elementwise(op, &[left, &right]).map(|node| Some(vec![node])).map_err(|error| refused(&error, line.span()))
    }

    /// Parses `fill(0.5)`, or `fill(x)`: the value of another fill in this shape.
    fn fill(&self, scanner: &mut Scanner<'t>, line: &Line<'t>, ty: Type, shape: Shape) -> ParseResult<Option<Vec<Node>>> {
        let mut ahead = scanner.clone();
        let made = if ahead.literal().is_none() && !ahead.sees("(") {
            let start = scanner.at();
            let Some(other) = self.node(scanner)?.1 else { return Ok(None) };
            let other_fill = match &*other.lock() {
                State::Pending(Expression { op: fill @ Op::Fill(_), .. }) => Some(fill.clone()),
                State::Pending(_) | State::Ready(_) | State::Symbolic(_) => None,
            };
            let Some(fill) = other_fill.filter(|_| other.ty() == ty) else {
                let message = format!("this node is not a fill of type `{ty}`");
                return Err(Box::new(Diagnostic::error(REFUSED, message).at(scanner.since(start), "here")));
            };
            crate::expr::check::possible("fill", &shape).map(|()| other.filled(shape, &fill))
        } else {
            Node::fill(self.context, shape, &value(scanner, ty)?)
        };
        scanner.expect(")")?;
        scanner.finish()?;
        made.map(|node| Some(vec![node])).map_err(|error| refused(&error, line.span()))
    }

    /// Parses the value of a setting.
    fn setting(&self, scanner: &mut Scanner<'t>) -> ParseResult<RawValue<'t>> {
        if scanner.eat("[") {
            return scanner.list("]", |scanner| self.plain(scanner)).map(RawValue::List);
        }
        self.plain(scanner)
    }

    fn plain(&self, scanner: &mut Scanner<'t>) -> ParseResult<RawValue<'t>> {
        let start = scanner.at();
        if let Some(text) = scanner.literal() {
            return Ok(RawValue::Literal(text));
        }
        if scanner.eat("(") {
            let lane = |scanner: &mut Scanner<'t>| scanner.literal().ok_or_else(|| scanner.unexpected("a value"));
            return scanner.list(")", lane).map(RawValue::Lanes);
        }
        if scanner.eat("@") {
            let name = scanner.name("the name of a function")?;
            let unknown = || {
                Box::new(Diagnostic::error(BAD_NAME, format!("there is no function `{name}`")).at(scanner.since(start), "here"))
            };
            return self.functions.get(name).and_then(Clone::clone).map(RawValue::Function).ok_or_else(unknown);
        }
        scanner.name("a number, a word, a list or a function").map(RawValue::Word)
    }

    /// Applies an operation by its name: an elementwise one, one of the graph, or one of the vocabulary.
    fn operation(&self, call: &ParsedCall<'_>, maps: Option<&[AxisMap]>, span: Span) -> ParseResult<Result<Vec<Node>>> {
        let one = |node: Result<Node>| node.map(|node| vec![node]);
        if let Some(op) = elementwise::named(call.name) {
            let count = call.inputs.len();
            let wanted = elementwise::inputs(&op).unwrap_or(count.max(1));
            return Ok(match count == wanted {
                true => one(Node::elementwise(op, &call.inputs())),
                false => Err(call.error(format!("expected {wanted} inputs, not {count}"))),
            });
        }
        Ok(match call.name {
            "lane" => {
                let lane =
                    call.number("lane").and_then(|lane| u8::try_from(lane).map_err(|_| call.error("there is no such lane")));
                let input = call.exactly::<1>();
                one(lane.and_then(|lane| Node::elementwise(Elementwise::Lane(lane), &input?)))
            }
            "view" => one(view(call, maps)),
            "broadcast" => one(call.exactly().and_then(|[input]| input.broadcast_to(call.stated()?.1))),
            "reshape" => one(call.exactly().and_then(|[input]| input.reshape(call.stated()?.1.clone()))),
            "position" => one(position(call)),
            "gather" => one(gather(call)),
            "concatenate" => one(call.number("axis").and_then(|axis| match &call.inputs()[..] {
                [] => Err(call.error("expected at least one array")),
                parts => Node::concatenate(axis, parts),
            })),
            name => match self.vocabulary.read(name) {
                Some(read) => read(call),
                None => {
                    let help = format!(
                        "operations are those on elements, fill, view, broadcast, reshape, position, gather, concatenate, {}",
                        self.vocabulary.names().join(", ")
                    );
                    return Err(Box::new(
                        Diagnostic::error(BAD_NAME, format!("`{name}` is not an operation")).at(span, "here").help(help),
                    ));
                }
            },
        })
    }
}

/// Parses the index along one axis of a view's input: `i0`, `2*i1 - 1 clamp`, `3`.
fn axis_map(scanner: &mut Scanner<'_>) -> ParseResult<AxisMap> {
    let mut map = AxisMap::fixed(0);
    let mut number = None;
    let is_number = !scanner.sees("i");
    if is_number {
        number = Some(scanner.integer::<i64>("an index, such as `i0`, `2*i1 - 1` or `3`")?);
    }
    if !is_number || scanner.eat("*") {
        let start = scanner.at();
        let word = scanner.name("the index of an axis, such as `i0`")?;
        let axis = word.strip_prefix('i').and_then(|axis| axis.parse::<u8>().ok());
        let wrong = || {
            Box::new(
                Diagnostic::error(BAD_NAME, format!("`{word}` is not the index of an axis")).at(scanner.since(start), "here"),
            )
        };
        map = AxisMap { source: Some(axis.ok_or_else(wrong)?), offset: 0, stride: number.unwrap_or(1), rule: Rule::Inside };
        if scanner.eat("+") {
            map.offset = scanner.integer("an offset")?;
        } else if scanner.eat("-") {
            map.offset = -scanner.integer::<i64>("an offset")?.saturating_abs();
        }
    } else {
        map.offset = number.unwrap_or(0);
    }
    let rules = [("clamp", Rule::Clamp), ("wrap", Rule::Wrap), ("mirror", Rule::Mirror), ("constant", Rule::Constant)];
    if let Some((_, rule)) = rules.into_iter().find(|(name, _)| scanner.eat_word(name)) {
        map.rule = rule;
    }
    Ok(map)
}

fn view(call: &ParsedCall<'_>, maps: Option<&[AxisMap]>) -> Result<Node> {
    let [input] = call.exactly()?;
    let (_, shape) = call.stated()?;
    let maps = maps.ok_or_else(|| call.error("the setting `at` is missing"))?;
    if let Some(axis) = maps.iter().filter_map(|map| map.source).find(|axis| usize::from(*axis) >= shape.rank()) {
        return Err(call.error(format!("i{axis} is no index of the result, which has shape {shape}")));
    }
    let fill = match maps.iter().any(|map| map.rule == Rule::Constant) {
        true => Some(call.value("fill", input.ty())?),
        false => None,
    };
    input.view(View::new("view", input.shape(), maps, shape.clone(), fill)?)
}

fn position(call: &ParsedCall<'_>) -> Result<Node> {
    let [] = call.exactly()?;
    let (ty, shape) = call.stated()?;
    if !ty.is_scalar() {
        return Err(Error::Type { operation: "position".into(), ty });
    }
    Node::position(call.context(), shape.clone(), call.number("axis")?, ty.element())
}

fn gather(call: &ParsedCall<'_>) -> Result<Node> {
    let inputs = call.inputs();
    let Some((input, indices)) = inputs.split_first() else { return Err(call.error("expected an array and indices")) };
    let boundary = match call.value_or_word("outside", input.ty())? {
        Ok(value) => Boundary::Constant(Lanes::from_slice(&value)),
        Err("clamp") => Boundary::Clamp,
        Err("wrap") => Boundary::Wrap,
        Err("mirror") => Boundary::Mirror,
        Err(other) => return Err(call.error(format!("`{other}` is not `clamp`, `wrap`, `mirror` or a value"))),
    };
    input.gather(indices, &boundary)
}

//! Printer: from nodes to text.

use super::elementwise::{ElementwiseForm, written};
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::node::{Expression, Inputs, Node, State};
use crate::expr::op::Op;
use crate::expr::shape::Shape;
use crate::expr::spelling::{Setting, Spelling, rule_text};
use crate::expr::view::{AxisMap, View};
use broadloom_device::Buffer;
use broadloom_scalar::text::literal_text;
use broadloom_scalar::{Function, Literal, Type};
use broadloom_skeleton::Rule;
use std::collections::HashMap;
use std::fmt::Write;

/// Prints the graph of some nodes. Elements of inputs are not printed.
pub fn print(outputs: &[Node]) -> Result<String> {
    print_with_elements(outputs, 0)
}

/// Prints the graph of some nodes, with the elements of inputs that have at most `most` elements; waits for
/// them.
pub fn print_with_elements(outputs: &[Node], most: usize) -> Result<String> {
    let mut printer = Printer { most, ..Printer::default() };
    let order = ordered(outputs);
    printer.find_results(&order);
    for node in &order {
        printer.node(node)?;
    }
    let names = outputs.iter().map(|node| printer.name(node)).collect::<Result<Vec<String>>>()?;
    let mut text = String::new();
    printer.functions.iter().for_each(|function| text.push_str(&format!("{}\n", function.text)));
    text.push_str(&printer.lines);
    // Writing to a string never fails.
    let _ = writeln!(text, "output {}", names.join(", "));
    Ok(text)
}

/// Returns all nodes that the outputs depend on, inputs first.
fn ordered(outputs: &[Node]) -> Vec<Node> {
    let (mut order, mut seen) = (vec![], HashMap::new());
    for output in outputs {
        let mut stack = vec![output.clone()];
        while let Some(top) = stack.last().cloned() {
            let inputs = match &*top.lock() {
                State::Pending(expression) => written_inputs(expression),
                State::Ready(_) | State::Symbolic(_) => Inputs::new(),
            };
            // The last input is pushed first: a stack returns it last.
            let missing: Vec<Node> = inputs.iter().rev().filter(|input| !seen.contains_key(&input.identity())).cloned().collect();
            if missing.is_empty() {
                stack.pop();
                if seen.insert(top.identity(), ()).is_none() {
                    order.push(top);
                }
            } else {
                stack.extend(missing);
            }
        }
    }
    order
}

/// Returns the inputs of an operation that are printed; others are derived from them.
fn written_inputs(expression: &Expression) -> Inputs {
    let chosen = match &expression.op {
        Op::Pattern(applied) => applied.operation().spelling().and_then(|spelling| spelling.inputs),
        _ => None,
    };
    match chosen {
        None => expression.inputs.clone(),
        Some(chosen) => chosen.iter().filter_map(|number| expression.inputs.get(*number).cloned()).collect(),
    }
}

/// Function of the text.
struct PrintedFunction {
    name: String,
    /// The text of the function before it was renamed.
    original: String,
    text: String,
}

/// Memory of an input.
#[derive(PartialEq, Eq, Hash)]
struct Memory {
    address: u64,
    bytes: usize,
    ty: Type,
}

#[derive(Default)]
struct Printer {
    most: usize,
    functions: Vec<PrintedFunction>,
    lines: String,
    names: HashMap<usize, String>,
    count: usize,
    memory: HashMap<Memory, Vec<(Shape, String)>>,
    /// Name of the node of each scalar.
    scalars: HashMap<u64, String>,
    /// For each node that is one of several results of an operation: the first of these nodes. `joint` has
    /// all of them, by result number.
    results: HashMap<usize, usize>,
    joint: HashMap<usize, Vec<Option<Node>>>,
}

/// Returns the result number of a node, if its operation may have several.
fn result_of(op: &Op) -> Option<u8> {
    match op {
        Op::Pattern(applied) => Some(applied.result()),
        Op::Elementwise(Elementwise::Call(_, result)) => Some(*result),
        Op::Elementwise(_) | Op::Fill(_) | Op::View(_) | Op::Reshape => None,
        Op::Position(_) | Op::Gather(..) | Op::Concatenate(_) => None,
    }
}

/// Returns whether two operations are equal except for the selected result.
fn is_same_but_for_result(a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::Pattern(a), Op::Pattern(b)) => a.is_same_operation(b),
        (Op::Elementwise(Elementwise::Call(a, _)), Op::Elementwise(Elementwise::Call(b, _))) => a == b,
        _ => false,
    }
}

fn expression_of(node: &Node) -> Option<Expression> {
    match &*node.lock() {
        State::Pending(expression) => Some(expression.clone()),
        State::Ready(_) | State::Symbolic(_) => None,
    }
}

impl Printer {
    /// Finds nodes that are results of one operation on the same inputs: they share one line.
    fn find_results(&mut self, order: &[Node]) {
        let mut by_inputs: HashMap<Vec<usize>, Vec<(usize, Op)>> = HashMap::new();
        for node in order {
            let Some(expression) = expression_of(node) else { continue };
            let Some(result) = result_of(&expression.op) else { continue };
            let inputs: Vec<usize> = expression.inputs.iter().map(Node::identity).collect();
            let known = by_inputs.entry(inputs).or_default();
            let first = known.iter().find(|(first, op)| {
                let free = self.joint[first].get(usize::from(result)).is_none_or(Option::is_none);
                free && is_same_but_for_result(op, &expression.op)
            });
            let first = match first {
                Some((first, _)) => *first,
                None => {
                    known.push((node.identity(), expression.op.clone()));
                    self.joint.insert(node.identity(), vec![]);
                    node.identity()
                }
            };
            self.results.insert(node.identity(), first);
            if let Some(all) = self.joint.get_mut(&first) {
                all.resize(all.len().max(usize::from(result) + 1), None);
                all[usize::from(result)] = Some(node.clone());
            }
        }
    }

    fn name(&self, node: &Node) -> Result<String> {
        let none = || Error::Plan { what: "a text".into(), reason: "a node without a name".into() };
        self.names.get(&node.identity()).cloned().ok_or_else(none)
    }

    /// Assigns the next name to a node.
    fn named(&mut self, node: &Node) -> String {
        let name = format!("n{}", self.count);
        self.count += 1;
        self.names.insert(node.identity(), name.clone());
        name
    }

    /// Writes the line of a node. Its inputs have names already.
    fn line(&mut self, node: &Node, right: &str) -> String {
        let name = self.named(node);
        self.lines.push_str(&format!("{name}: {}{} = {right}\n", node.ty(), node.shape()));
        name
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        if self.names.contains_key(&node.identity()) {
            return Ok(());
        }
        let expression = match node.state() {
            State::Ready(buffer) => return self.input(node, &buffer),
            State::Symbolic(_) => {
                self.line(node, "input");
                return Ok(());
            }
            State::Pending(expression) => expression,
        };
        let inputs = written_inputs(&expression).iter().map(|input| self.name(input)).collect::<Result<Vec<String>>>()?;
        let right = match &expression.op {
            Op::Fill(scalar) => {
                if scalar.symbol().is_some() {
                    return Err(Error::symbolic("print"));
                }
                let known = self.scalars.get(&scalar.number());
                let right = known.cloned().unwrap_or_else(|| lanes_text(scalar.lanes()));
                let name = self.line(node, &format!("fill({right})"));
                self.scalars.entry(scalar.number()).or_insert(name);
                return Ok(());
            }
            Op::Elementwise(Elementwise::Call(function, _)) => {
                let name = self.function(function);
                self.call(&Spelling::new(format!("@{name}")), &inputs)
            }
            Op::Elementwise(op) => match written(op) {
                Some(ElementwiseForm::Between(operator)) => inputs.join(&format!(" {operator} ")),
                Some(ElementwiseForm::Before(spelling)) => self.call(&spelling, &inputs),
                None => return Err(untold(&op.to_string())),
            },
            Op::View(view) => format!("view({}, {})", inputs.join(", "), view_text(view)),
            Op::Reshape => self.call(&Spelling::new("reshape"), &inputs),
            Op::Position(axis) => self.call(&Spelling::new("position").number("axis", usize::from(*axis)), &inputs),
            Op::Gather(rule, fill) => {
                let outside = match fill {
                    Some(fill) => Setting::Value(fill.clone()),
                    // Indices that are known to be inside come from a layout or segment numbers. A text could
                    // contain others, so it says clamp.
                    None if *rule == Rule::Inside => Setting::Word(rule_text(Rule::Clamp).to_owned()),
                    None => Setting::Word(rule_text(*rule).to_owned()),
                };
                self.call(&Spelling::new("gather").with("outside", outside), &inputs)
            }
            Op::Concatenate(axis) => self.call(&Spelling::new("concatenate").number("axis", usize::from(*axis)), &inputs),
            Op::Pattern(applied) => {
                let operation = applied.operation();
                let spelling = operation.spelling().ok_or_else(|| untold(&operation.name()))?;
                self.call(&spelling, &inputs)
            }
        };
        // All results of the operation are on the left, `_` for unused ones.
        let all = self.results.get(&node.identity()).and_then(|first| self.joint.get(first)).cloned();
        match all {
            Some(all) if all.len() > 1 => {
                let left = all.iter().map(|node| match node {
                    None => "_".to_owned(),
                    Some(node) => format!("{}: {}{}", self.named(node), node.ty(), node.shape()),
                });
                let left = left.collect::<Vec<_>>().join(", ");
                self.lines.push_str(&format!("{left} = {right}\n"));
            }
            _ => drop(self.line(node, &right)),
        }
        Ok(())
    }

    /// Writes an array in memory. The same memory in another shape is a reshape.
    fn input(&mut self, node: &Node, buffer: &Buffer<u8>) -> Result<()> {
        let key = Memory { address: buffer.address(), bytes: buffer.len(), ty: node.ty() };
        let known = self.memory.entry(key).or_default();
        if !buffer.is_empty()
            && let Some((_, name)) = known.iter().find(|(shape, _)| shape == node.shape())
        {
            self.names.insert(node.identity(), name.clone());
            return Ok(());
        }
        let right = match known.first().filter(|_| !buffer.is_empty()) {
            Some((_, name)) => format!("reshape({name})"),
            None if node.shape().count() > self.most || node.shape().is_empty() => "input".to_owned(),
            None => {
                let array = HostArray::from_bytes(node.ty(), node.shape().clone(), &buffer.read()?);
                let elements = (0..node.shape().count()).map(|index| lanes_text(array.at(index)));
                format!("input [{}]", elements.collect::<Vec<_>>().join(", "))
            }
        };
        let name = self.line(node, &right);
        let key = Memory { address: buffer.address(), bytes: buffer.len(), ty: node.ty() };
        self.memory.entry(key).or_default().push((node.shape().clone(), name));
        Ok(())
    }

    /// Writes an operation with its inputs and settings.
    fn call(&mut self, spelling: &Spelling, inputs: &[String]) -> String {
        let mut parts = inputs.to_vec();
        for (key, setting) in &spelling.settings {
            parts.push(format!("{key}: {}", self.setting(setting)));
        }
        format!("{}({})", spelling.name, parts.join(", "))
    }

    fn setting(&mut self, setting: &Setting) -> String {
        match setting {
            Setting::Number(number) => number.to_string(),
            Setting::Numbers(numbers) => format!("[{}]", numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
            Setting::Word(word) => word.clone(),
            Setting::Words(words) => format!("[{}]", words.join(", ")),
            Setting::Value(lanes) => lanes_text(lanes),
            Setting::Values(values) => format!("[{}]", values.iter().map(|v| lanes_text(v)).collect::<Vec<_>>().join(", ")),
            Setting::Function(function) => format!("@{}", self.function(function)),
        }
    }

    /// Returns the name of a function, which is printed before the nodes.
    fn function(&mut self, function: &Function) -> String {
        let original = function.to_string();
        if let Some(known) = self.functions.iter().find(|known| known.original == original) {
            return known.name.clone();
        }
        let plain: String = function.name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let plain = if plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') { plain } else { format!("f{plain}") };
        let numbered = (2..).map(|number: u32| format!("{plain}_{number}"));
        let is_free = |name: &String| self.functions.iter().all(|known| known.name != *name);
        let name = std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or(plain);
        let body = original.strip_prefix(&format!("fn {}(", function.name())).unwrap_or(&original);
        self.functions.push(PrintedFunction { text: format!("fn {name}({body}"), name: name.clone(), original });
        name
    }
}

fn untold(operation: &str) -> Error {
    Error::Text { operation: operation.to_owned(), reason: "it has no textual form: `Operation::spelling` says none".into() }
}

/// Returns the text of a value: a literal, or lanes in parentheses.
fn lanes_text(lanes: &[Literal]) -> String {
    match lanes {
        [one] => literal_text(*one),
        several => format!("({})", several.iter().map(|lane| literal_text(*lane)).collect::<Vec<_>>().join(", ")),
    }
}

fn view_text(view: &View) -> String {
    let axis = |map: &AxisMap| {
        let index = match (map.source, map.stride) {
            (None, _) => map.offset.to_string(),
            (Some(axis), 1) => format!("i{axis}"),
            (Some(axis), stride) => format!("{stride}*i{axis}"),
        };
        let offset = match (map.source, map.offset) {
            (None, _) | (_, 0) => String::new(),
            (_, offset) if offset < 0 => format!(" - {}", offset.unsigned_abs()),
            (_, offset) => format!(" + {offset}"),
        };
        format!("{index}{offset} {}", rule_text(map.rule)).trim_end().to_owned()
    };
    let axes = view.axes.iter().map(axis).collect::<Vec<_>>().join(", ");
    let fill = view.fill.as_ref().map_or(String::new(), |fill| format!(", fill: {}", lanes_text(fill)));
    format!("at: [{axes}]{fill}")
}

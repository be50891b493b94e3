//! The environment of code that runs while the graph is built.

use super::builder::{Builder, OpenEnd, OpenStream};
use crate::language::codes;
use crate::language::core::{Create, Created, Layout, Role, Type, Value};
use crate::language::eval::Weights;
use crate::language::eval::{Budget, PATHS, Stop, World, file_item, random};
use crate::language::format::{FORMATS, Format, StreamFile};
use crate::language::graph::{NodeKind, Tree};
use broadloom_diag::{Diagnostic, Span};
use std::io::Read as _;
use std::sync::Arc;

/// The parts of a composite stream, as its body created them.
#[derive(Default)]
pub(super) struct CompositeParts {
    pub(super) children: Vec<(OpenStream, Span)>,
    pub(super) body: Option<(OpenStream, Span)>,
    pub(super) back: Option<(OpenStream, Span)>,
    pub(super) split: Option<(Weights, Span)>,
    pub(super) join: Option<(Weights, Span)>,
    pub(super) enqueued: Vec<(Value, Span)>,
}

pub(super) struct CompositeSite<'b, 'a> {
    pub(super) builder: &'b mut Builder<'a>,
    pub(super) parts: CompositeParts,
}

/// Maximum size of a text file for an array.
const MAX_FILE: u64 = 256 << 20;

fn no_tapes(span: Span) -> Stop {
    Stop::error(codes::MISPLACED, "there are no tapes while the graph is built", span)
}

fn twice(word: &str, span: Span, first: Span) -> Stop {
    let error = Diagnostic::error(codes::BAD_SHAPE, format!("the stream has two `{word}` statements"));
    let error = error.at(span, "this is the second").label(first, "this is the first");
    Stop::Error(Box::new(error.help("remove one of them")))
}

impl World for CompositeSite<'_, '_> {
    fn pop(&mut self, span: Span) -> Result<Value, Stop> {
        Err(no_tapes(span))
    }

    fn peek(&mut self, _: i32, span: Span) -> Result<Value, Stop> {
        Err(no_tapes(span))
    }

    fn push(&mut self, _: Value, span: Span) -> Result<(), Stop> {
        Err(no_tapes(span))
    }

    fn print(&mut self, append: &dyn Fn(&mut String)) -> Result<(), Stop> {
        let before = self.builder.printed.len();
        append(&mut self.builder.printed);
        let printed = self.builder.printed.len() - before;
        let budget = &mut self.builder.budget;
        budget.cells = budget.cells.saturating_add(printed as u64 / 8);
        if budget.cells > budget.limits.cells {
            let error = Diagnostic::error(codes::MEMORY, "the program prints too much while its graph is built");
            return Err(Stop::Error(Box::new(error)));
        }
        Ok(())
    }

    fn iterations(&self) -> i32 {
        0
    }

    fn random(&mut self) -> f64 {
        random(&mut self.builder.random)
    }

    fn send(&mut self, _: u32, _: &Arc<str>, _: Vec<Value>, _: i32, span: Span) -> Result<(), Stop> {
        Err(no_tapes(span))
    }

    fn portal(&mut self) -> u32 {
        self.builder.portals.push(vec![]);
        self.builder.portals.len() as u32 - 1
    }

    fn create(
        &mut self,
        role: Role,
        create: &Create,
        args: Vec<Value>,
        portals: Vec<u32>,
        item: Option<Layout>,
    ) -> Result<(), Stop> {
        let built = match (&create.stream, item) {
            (Created::Stream(id), _) => self.builder.stream(*id, args.into(), &portals, create.span)?,
            (created, Some(layout)) => self.builder.built_in(created, layout, &args, create.span)?,
            (_, None) => return Err(Stop::error(codes::RUN_TIME, "the type of the items is missing", create.span)),
        };
        let slot = match role {
            Role::Child => {
                self.parts.children.push((built, create.span));
                return Ok(());
            }
            Role::Body => &mut self.parts.body,
            Role::Loop => &mut self.parts.back,
        };
        match slot.replace((built, create.span)) {
            Some((_, first)) => Err(twice(if role == Role::Body { "body" } else { "loop" }, create.span, first)),
            None => Ok(()),
        }
    }

    fn split(&mut self, weights: Weights, span: Span) -> Result<(), Stop> {
        match self.parts.split.replace((weights, span)) {
            Some((_, first)) => Err(twice("split", span, first)),
            None => Ok(()),
        }
    }

    fn join(&mut self, weights: Weights, span: Span) -> Result<(), Stop> {
        match self.parts.join.replace((weights, span)) {
            Some((_, first)) => Err(twice("join", span, first)),
            None => Ok(()),
        }
    }

    fn enqueue(&mut self, value: Value, span: Span) -> Result<(), Stop> {
        let budget = &mut self.builder.budget;
        budget.cells = budget.cells.saturating_add(value.cells());
        if budget.cells > budget.limits.cells {
            let message = format!("the enqueued items need more memory than the limit of {} scalars", budget.limits.cells);
            return Err(Stop::error(codes::MEMORY, message, span).help("enqueue fewer items"));
        }
        self.parts.enqueued.push((value, span));
        Ok(())
    }

    fn read_numbers(&mut self, file: &str, count: u32, span: Span) -> Result<Vec<f64>, Stop> {
        let failed = |error: String| Stop::error(codes::FILE, format!("`{file}` cannot be read: {error}"), span).help(PATHS);
        let mut text = String::new();
        let reader = self.builder.host.open(file).map_err(|error| failed(error.to_string()))?;
        reader.take(MAX_FILE).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        let mut numbers = vec![];
        for line in text.split_whitespace().take(count as usize) {
            numbers.push(line.parse().map_err(|_| failed(format!("`{line}` is no number")))?);
        }
        if numbers.len() < count as usize {
            return Err(failed(format!("it holds {} of {count} numbers", numbers.len())));
        }
        Ok(numbers)
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.builder.budget
    }
}

impl Builder<'_> {
    /// Builds a stream of the library.
    fn built_in(&mut self, created: &Created, layout: Layout, args: &[Value], span: Span) -> Result<OpenStream, Stop> {
        let text = |at: usize| match args.get(at) {
            Some(Value::Text(text)) => text.clone(),
            _ => "".into(),
        };
        let (name, written) = (text(0), text(1));
        let wrong = |message: String| Stop::error(codes::FILE, format!("`{name}`: {message}"), span);
        let mut format = Format::parse(&written).map_err(|error| wrong(error.to_string()).help(FORMATS))?;
        if let Created::FileReader(_, Some(sample)) | Created::FileWriter(_, Some(sample)) = created {
            format.sample = format.sample.or(Some(*sample));
        }
        if let (Some(item), Created::FileReader(..) | Created::FileWriter(..)) = (file_item(&layout.ty()), created) {
            let reads = matches!(created, Created::FileReader(..));
            format.check(&name, item, reads).map_err(|error| wrong(error.to_string()).help(FORMATS))?;
        }
        let file = StreamFile { name, format };
        let (name, kind, ports) = match created {
            Created::FileReader(..) => ("FileReader", NodeKind::FileReader(layout.clone(), file), (0, 1)),
            Created::FileWriter(..) => ("FileWriter", NodeKind::FileWriter(layout.clone(), file), (1, 0)),
            Created::Identity(_) | Created::Stream(_) => ("Identity", NodeKind::Identity, (1, 1)),
        };
        if layout.ty() == Type::Void {
            return Err(
                Stop::error(codes::TAPE_TYPE, format!("`{name}` of void has no items"), span).help("name the type of its items")
            );
        }
        let scalar = matches!(layout.ty(), Type::Int | Type::Float | Type::Bit | Type::Double | Type::Complex);
        if name != "Identity" && !scalar {
            let message = format!("`{name}` has no format for items of type {}", layout.show(&self.program.structs));
            let error = Diagnostic::error(codes::TAPE_TYPE, message).at(span, "");
            return Err(Stop::Error(Box::new(
                error
                    .help("read and write int, float, double, complex or bit, or numbers of files such as short, uint8 and cs16"),
            )));
        }
        let node = self.node(name, kind, ports, span)?;
        let end = || OpenEnd { node, port: 0, layout: layout.clone() };
        let input = (ports.0 == 1).then(end);
        let output = (ports.1 == 1).then(end);
        Ok(OpenStream { tree: Tree::Node(node), input, output, name: name.to_owned() })
    }
}

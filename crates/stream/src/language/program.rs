//! A program from its text to its run.

use crate::language::core;
use crate::language::elaborate::elaborate;
use crate::language::eval::{self, Host, Outcome, Settings, file_item, with_stack};
use crate::language::format::{FORMATS, Format, StreamFile};
use crate::language::graph::{Graph, NodeKind};
use crate::language::include::load;
use crate::language::limits::Limits;
use crate::language::lower::lower;
use crate::language::schedule::{Schedule, Style, schedule};
use crate::language::syntax::{ast, parse, parse_setting};
use broadloom_device::trace;
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Sources};
use std::fmt;

/// A compiled program: checked, elaborated, and scheduled if all its rates are known.
#[derive(Clone, Debug)]
pub struct Program {
    /// The text, for diagnostics.
    pub sources: Sources,
    /// The typed program.
    pub core: core::Program,
    /// The elaborated graph.
    pub graph: Graph,
    /// The schedule. It is absent if rates are dynamic.
    pub schedule: Option<Schedule>,
}

/// The errors of a program, with the text they point into.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The text.
    pub sources: Sources,
    /// The errors.
    pub diagnostics: Diagnostics,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sources.render_all(&self.diagnostics))
    }
}

impl std::error::Error for Failure {}

/// Parts of a program that its caller provides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Binding<'b> {
    /// The stream to run, written as after `add`, in place of the top-level stream.
    pub stream: Option<&'b str>,
    /// Values, written as `name=value` for a static variable or a parameter of the top-level stream, and as
    /// `Stream.name=value` for a parameter wherever the stream is added.
    pub values: &'b [String],
}

impl Program {
    /// Compiles a program from one text. The host provides the files that initialise arrays.
    pub fn compile(name: &str, text: &str, host: &mut dyn Host, limits: &Limits) -> Result<Program, Failure> {
        Program::compile_files(&[(name, text)], host, limits)
    }

    /// Compiles a program from several texts, given as names and contents.
    pub fn compile_files(files: &[(&str, &str)], host: &mut dyn Host, limits: &Limits) -> Result<Program, Failure> {
        Program::compile_bound(files, &Binding::default(), host, limits)
    }

    /// Compiles one stream of a program. `stream` is written as after `add`: `Fft(1024)`.
    ///
    /// A `FileReader` with the name `input` feeds the stream and a `FileWriter` with the name `output` takes
    /// its items, so that a session can feed it. The top-level stream of the text is left out.
    pub fn compile_stream(
        files: &[(&str, &str)],
        stream: &str,
        host: &mut dyn Host,
        limits: &Limits,
    ) -> Result<Program, Failure> {
        Program::compile_bound(files, &Binding { stream: Some(stream), values: &[] }, host, limits)
    }

    /// Compiles a program with parts that its caller provides. A stream in place of the top level stands between files
    /// with the names `input` and `output`, as in [`compile_stream`](Self::compile_stream).
    pub fn compile_bound(
        files: &[(&str, &str)],
        binding: &Binding<'_>,
        host: &mut dyn Host,
        limits: &Limits,
    ) -> Result<Program, Failure> {
        let mut sources = Sources::new();
        let ids: Vec<SourceId> = files.iter().map(|(name, text)| sources.add(*name, *text)).collect();
        let compiled = with_stack(|| {
            let parsing = trace::span("parse");
            let mut program = load(files, &ids, &mut sources, host)?;
            for value in binding.values {
                program.append(parse_setting(sources.add("value", value.as_str()), value)?);
            }
            if let Some(stream) = binding.stream {
                let text = around(&mut program, stream)?;
                program.append(parse(sources.add("stream", &*text), &text)?);
            }
            let core = lower(&program)?;
            drop(parsing);
            let building = trace::span("build the stream graph");
            let graph = elaborate(&core, host, limits).map_err(|error| Diagnostics::from(*error))?;
            drop(building);
            let mut made = None;
            if graph.is_static() {
                let _span = trace::span("schedule");
                // Messages that travel upstream must not arrive too late.
                let style = if eval::has_upstream_messages(&graph) { Style::Pull } else { Style::Phased };
                made = Some(schedule(&graph, limits, style).map_err(|error| Diagnostics::from(*error))?);
            }
            Ok((core, graph, made))
        });
        match flatten(compiled) {
            Ok((core, graph, schedule)) => Ok(Program { sources, core, graph, schedule }),
            Err(diagnostics) => Err(Failure { sources, diagnostics }),
        }
    }

    /// Replaces the file of a `FileReader`, if `reads`, or of a `FileWriter`. The program has one, or `name` says which.
    pub fn bind_file(&mut self, reads: bool, name: Option<&str>, file: &str, format: Format) -> Result<(), Failure> {
        let word = if reads { "FileReader" } else { "FileWriter" };
        let mut ends = vec![];
        for (id, node) in &self.graph.nodes {
            match &node.kind {
                NodeKind::FileReader(_, own) if reads => ends.push((id, own.name.clone())),
                NodeKind::FileWriter(_, own) if !reads => ends.push((id, own.name.clone())),
                _ => {}
            }
        }
        let chosen: Vec<_> = ends.iter().filter(|(_, own)| name.is_none_or(|name| &**own == name)).collect();
        let fail = |message: String, help: String| {
            let error = Diagnostic::error(crate::language::codes::FILE, message).help(help);
            Err(Failure { sources: self.sources.clone(), diagnostics: error.into() })
        };
        let [(id, _)] = chosen[..] else {
            let names = ends.iter().map(|(_, own)| format!("`{own}`")).collect::<Vec<_>>().join(", ");
            return match (ends.is_empty(), name) {
                (true, _) => fail(format!("the program has no `{word}`"), format!("`add {word}<float>(\"…\");`")),
                (_, Some(name)) if chosen.is_empty() => {
                    fail(format!("the program has no `{word}` of `{name}`"), format!("there are {names}"))
                }
                _ => fail(format!("the program has several files of `{word}`: {names}"), "say which: `NAME=FILE`".to_owned()),
            };
        };
        let node = &self.graph.nodes[*id];
        if let NodeKind::FileReader(layout, _) | NodeKind::FileWriter(layout, _) = &node.kind
            && let Some(item) = file_item(&layout.ty())
            && let Err(error) = format.check(file, item, reads)
        {
            let error = Diagnostic::error(crate::language::codes::FILE, format!("`{file}`: {error}")).at(node.span, "");
            return Err(Failure { sources: self.sources.clone(), diagnostics: error.help(FORMATS).into() });
        }
        if let NodeKind::FileReader(_, own) | NodeKind::FileWriter(_, own) = &mut self.graph.nodes[*id].kind {
            *own = StreamFile { name: file.into(), format };
        }
        Ok(())
    }

    /// Runs the program from its start.
    pub fn run(&self, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Failure> {
        let outcome =
            with_stack(|| eval::run(&self.core, &self.graph, host, settings).map_err(|error| Diagnostics::from(*error)));
        flatten(outcome).map_err(|diagnostics| Failure { sources: self.sources.clone(), diagnostics })
    }
}

/// Removes the top-level stream from a program. Returns the text of a new one that puts files around a
/// stream.
fn around(program: &mut ast::Program, stream: &str) -> Result<String, Diagnostics> {
    let is_void = |ty: &ast::Type| ty.base == ast::Base::Void;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let name = stream.trim().split(|c| !word(c)).next().unwrap_or_default();
    let found = program.streams.iter().find(|stream| stream.name.as_ref().is_some_and(|own| &*own.name == name));
    let Some((input, output)) = found.and_then(|stream| stream.types.clone()) else {
        let names = program.streams.iter().filter_map(|stream| stream.name.as_ref()).map(|own| format!("`{}`", own.name));
        let error = Diagnostic::error(crate::language::codes::UNDEFINED, format!("there is no stream `{name}`"));
        return Err(error.help(format!("there are {}", names.collect::<Vec<_>>().join(", "))).into());
    };
    let item = |ty: &ast::Type, side: &str| match (&ty.base, ty.lengths.is_empty()) {
        (ast::Base::Int, true) => Ok("int"),
        (ast::Base::Float, true) => Ok("float"),
        (ast::Base::Double, true) => Ok("double"),
        (ast::Base::Complex, true) => Ok("complex"),
        (ast::Base::Bit, true) => Ok("bit"),
        _ => {
            let message = format!("the {side} of `{name}` has no items that a file can hold");
            let error = Diagnostic::error(crate::language::codes::BAD_SHAPE, message).at(ty.span, "");
            let error = error.help("files hold int, float, double, complex and bit; choose a stream between such tapes");
            Err(Diagnostics::from(error))
        }
    };
    let (reads, writes) = (item(&input, "input")?, item(&output, "output")?);
    let is_top = |stream: &ast::Stream| stream.types.as_ref().is_some_and(|(input, output)| is_void(input) && is_void(output));
    program.streams.retain(|stream| !is_top(stream));
    let is_taken = |name: &str| program.streams.iter().any(|stream| stream.name.as_ref().is_some_and(|own| &*own.name == name));
    let mut top = "Around".to_owned();
    while is_taken(&top) {
        top.push('_');
    }
    Ok(format!(
        "void->void pipeline {top} {{ add FileReader<{reads}>(\"input\"); add {stream}; add FileWriter<{writes}>(\"output\"); }}"
    ))
}

fn flatten<T>(result: std::io::Result<Result<T, Diagnostics>>) -> Result<T, Diagnostics> {
    result.unwrap_or_else(|error| {
        Err(Diagnostic::error(crate::language::codes::MEMORY, format!("there is no thread for the program: {error}")).into())
    })
}

//! The state of a translation: the filter, the site in a kernel, and the function that is translated.

use super::cooperation::Cooperation;
use super::position::TapePosition;
use super::reason::Reason;
use super::translated::{Induction, Window};
use super::value::{Atom, Leaf, Ref, Term};
use super::words::Words;
use crate::language::core::{Filter, FunctionId, Layout, Program, Stmt, Value};
use crate::language::graph::{Graph, Instance, Node, TapeId};
use broadloom_scalar::{Builder, Memory, Value as ScalarValue, Variable};
use std::collections::HashMap;
use std::rc::Rc;

/// A filter to translate, with all its constants.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) program: &'a Program,
    pub(crate) filter: &'a Filter,
    pub(crate) instance: &'a Instance,
    pub(crate) statics: &'a [Value],
    pub(crate) input: Option<&'a Layout>,
    pub(crate) output: Option<&'a Layout>,
    /// Fields that each firing changes by a constant amount.
    pub(crate) inductions: &'a [Induction],
}

impl<'a> Subject<'a> {
    /// Returns the filter of a node, without inductions.
    pub(crate) fn of(program: &'a Program, graph: &'a Graph, node: &'a Node) -> Option<Subject<'a>> {
        let (filter, instance) = node.filter(program)?;
        let layout = |tapes: &[TapeId]| tapes.first().map(|tape| &graph.tapes[*tape].layout);
        let (input, output) = (layout(&node.inputs), layout(&node.outputs));
        Some(Subject { program, filter, instance, statics: &graph.statics, input, output, inductions: &[] })
    }
}

/// The state of a local.
#[derive(Clone, Debug, Default)]
pub(super) struct Local {
    /// Its value, if it is set only once.
    pub(super) term: Option<Term>,
    /// Its storage.
    pub(super) place: Option<Ref>,
    /// Its value at this point, if it is constant.
    pub(super) known: Option<Value>,
    /// True if it is definitely set at this point.
    pub(super) set: bool,
    /// A flag that is true at run time if it is set.
    pub(super) flag: Option<Variable>,
}

/// A function during translation.
pub(super) struct Frame {
    pub(super) function: FunctionId,
    pub(super) locals: Vec<Local>,
    /// The storage of the result, if there are several returns.
    pub(super) result: Option<Ref>,
    /// The result, if the only return is at the end.
    pub(super) returned: Option<Term>,
    /// A flag that is true at run time if the function was left before its end.
    pub(super) left: Option<Variable>,
    /// Locals that are written after their declaration.
    pub(super) written: Vec<bool>,
}

/// Code that reads a word of a firing's window.
pub(crate) type Reads<'a> = &'a dyn Fn(&Builder, ScalarValue) -> ScalarValue;
/// Code that writes a word that a firing pushes.
pub(crate) type Writes<'a> = &'a dyn Fn(&Builder, ScalarValue, ScalarValue);

/// The site in a kernel where a firing is written.
pub(crate) struct KernelSite<'a> {
    pub(crate) b: &'a Builder,
    pub(crate) reads: Reads<'a>,
    pub(crate) writes: Writes<'a>,
    /// The number of the firing.
    pub(crate) firing: ScalarValue,
    /// The variable that records failures.
    pub(crate) bad: Variable,
    /// Fields that firings write, with the storage of their leaves.
    pub(crate) state: &'a [(usize, Layout, Rc<Vec<Leaf>>)],
    /// The threads that run the firing together, if there are several.
    pub(crate) cooperation: Option<Cooperation<'a>>,
}

/// The loop along which a firing is split.
#[derive(Clone, Copy)]
pub(super) struct Split<'a> {
    pub(super) main: &'a Stmt,
    /// The array that rounds write, and the loop that pushes its elements.
    pub(super) out: Option<(usize, &'a Stmt)>,
    /// The number of the round.
    pub(super) round: ScalarValue,
}

/// The counter of a loop whose number of rounds is known.
#[derive(Clone, Copy)]
pub(super) struct CountedLoop {
    pub(super) local: usize,
    pub(super) start: i32,
    pub(super) stride: i32,
    /// Rounds.
    pub(super) count: u32,
}

/// A translation of a firing.
pub(super) struct Translator<'a> {
    pub(super) b: &'a Builder,
    pub(super) subject: Subject<'a>,
    pub(super) input: Option<(Reads<'a>, Words)>,
    pub(super) output: Option<(Writes<'a>, Words)>,
    pub(super) window: Window,
    pub(super) firing: ScalarValue,
    pub(super) bad: Variable,
    pub(super) popped: TapePosition,
    pub(super) pushed: TapePosition,
    pub(super) frames: Vec<Frame>,
    pub(super) constants: HashMap<(u8, usize), Ref>,
    pub(super) inductions: HashMap<usize, Variable>,
    pub(super) state: HashMap<usize, Ref>,
    pub(super) cooperation: Option<Cooperation<'a>>,
    /// Arrays that rounds of shared loops add to, and their memory if they have several copies.
    pub(super) shared_arrays: Vec<usize>,
    pub(super) counters: Vec<(usize, Memory)>,
    /// The position of an input word that is already loaded, and the word.
    pub(super) loaded: Option<(ScalarValue, ScalarValue)>,
    /// Nesting depth of conditions and loops.
    pub(super) nesting: u32,
    /// Rounds so far of all loops of the firing without a known number of rounds.
    pub(super) looped: Variable,
    /// Product of the rounds of the enclosing counted loops.
    pub(super) enclosing_rounds: u64,
    /// True inside a shared loop.
    pub(super) sharing: bool,
    /// `split` is true if a loop was split among blocks, `stopped` if the code ends there.
    pub(super) split: bool,
    pub(super) stopped: bool,
    /// The loop along which the firing is split, a flag that is true while its body is written, and its
    /// number of rounds.
    pub(super) rounds: Option<Split<'a>>,
    pub(super) in_round: bool,
    pub(super) count: u32,
    pub(super) words: u64,
    pub(super) numbered: bool,
}

/// The input and the output of a firing, if it has them, with the words of their items.
pub(super) type FiringEnds<'a> = (Option<(Reads<'a>, Words)>, Option<(Writes<'a>, Words)>);

impl<'a> Translator<'a> {
    /// Starts a firing from its number and the variable that records failures.
    pub(super) fn new(
        b: &'a Builder,
        subject: Subject<'a>,
        ends: FiringEnds<'a>,
        window: Window,
        firing: ScalarValue,
        bad: Variable,
    ) -> Translator<'a> {
        let zero = || TapePosition::Fixed(Atom::Known(Value::Int(0)));
        let (input, output) = ends;
        Translator {
            b,
            subject,
            input,
            output,
            window,
            firing,
            bad,
            popped: zero(),
            pushed: zero(),
            frames: vec![],
            constants: HashMap::new(),
            inductions: HashMap::new(),
            state: HashMap::new(),
            cooperation: None,
            shared_arrays: vec![],
            counters: vec![],
            loaded: None,
            nesting: 0,
            looped: b.variable_with(b.literal(0)),
            enclosing_rounds: 1,
            sharing: false,
            split: false,
            stopped: false,
            rounds: None,
            in_round: false,
            count: 0,
            words: 0,
            numbered: false,
        }
    }

    /// Marks the firing as failed if a condition holds at run time.
    pub(super) fn fail_if(&mut self, condition: ScalarValue) {
        self.b.set(self.bad, self.b.or(self.b.get(self.bad), condition));
    }

    pub(super) fn frame(&mut self) -> Result<&mut Frame, Reason> {
        self.frames.last_mut().ok_or_else(|| "its code stands outside of a function".into())
    }
}

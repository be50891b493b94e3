//! Inlining of calls, with simplification of the result.
//!
//! Functions that are not recursive, directly or indirectly, are inlined if they are small or called from one
//! place. Each function is rebuilt through [`Builder`], so equal operations of caller and callee become one,
//! and the callee reuses descriptors of the caller. Functions without remaining calls are removed. A
//! statement of the library gets the place of the call, so that errors refer to the text of the program.

use super::{Block, Builder, FuncId, Function, Op, Program, SpaceId, Stmt, VarId, Vars};
use broadloom_diag::Span;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

/// Maximum number of operations of a function that is inlined at all its calls.
const SMALL: usize = 60;

/// Number of operations from which on a function inlines no more calls.
const LARGE: usize = 4000;

/// Inlines and simplifies all functions.
pub fn inline_calls(program: &mut Program) {
    let order = callees_first(program);
    let calls = count_calls(program);
    let (mut recurs, mut sizes) = (SecondaryMap::new(), SecondaryMap::new());
    for &(id, is_recursive) in &order {
        recurs[id] = is_recursive;
        sizes[id] = size_of_block(&program.functions[id].body);
    }
    for &(id, _) in &order {
        let inlinable = |callee: FuncId, size: usize| {
            let own = sizes[callee];
            callee != id && !recurs[callee] && size + own <= LARGE && (own <= SMALL || calls[callee] == 1)
        };
        let function = Rebuild::run(program, id, &inlinable, &sizes);
        sizes[id] = size_of_block(&function.body);
        program.functions[id] = function;
    }
    remove_unused_functions(program);
}

fn size_of_block(block: &Block) -> usize {
    let inner = |stmt: &Stmt| match &stmt.op {
        Op::If(branches) => size_of_block(&branches.0) + size_of_block(&branches.1),
        _ => 0,
    };
    block.stmts.iter().map(|stmt| 1 + inner(stmt)).sum()
}

fn each_call(block: &Block, see: &mut dyn FnMut(FuncId)) {
    for stmt in &block.stmts {
        match &stmt.op {
            Op::Call(callee) | Op::Sequential(_, callee) | Op::Loop(_, callee) => see(*callee),
            Op::If(branches) => {
                each_call(&branches.0, see);
                each_call(&branches.1, see);
            }
            Op::Vector(..) | Op::Const(_) | Op::Check(_) | Op::Foreign(_) | Op::Small => {}
        }
    }
}

fn count_calls(program: &Program) -> SecondaryMap<FuncId, u32> {
    let mut calls = SecondaryMap::new();
    program.functions.values().for_each(|function| each_call(&function.body, &mut |callee| calls[callee] += 1));
    calls
}

/// Lists functions, callees before their callers, each with whether it can reach itself.
fn callees_first(program: &Program) -> Vec<(FuncId, bool)> {
    let edges = |id: FuncId| {
        let mut out = vec![];
        each_call(&program.functions[id].body, &mut |callee| out.push(callee));
        out
    };
    // Tarjan's components, with an explicit stack.
    let mut index: SecondaryMap<FuncId, u32> = SecondaryMap::new();
    let mut low: SecondaryMap<FuncId, u32> = SecondaryMap::new();
    let mut closed: SecondaryMap<FuncId, bool> = SecondaryMap::new();
    let (mut next, mut members, mut order) = (1, vec![], vec![]);
    for root in program.functions.keys() {
        let mut open: Vec<(FuncId, Vec<FuncId>)> = vec![];
        if index[root] == 0 {
            (index[root], low[root], next) = (next, next, next + 1);
            members.push(root);
            open.push((root, edges(root)));
        }
        while let Some((id, callees)) = open.last_mut() {
            let id = *id;
            match callees.pop() {
                Some(callee) if index[callee] == 0 => {
                    (index[callee], low[callee], next) = (next, next, next + 1);
                    members.push(callee);
                    open.push((callee, edges(callee)));
                }
                Some(callee) if !closed[callee] => low[id] = low[id].min(index[callee]),
                Some(_) => {}
                None => {
                    open.pop();
                    if let Some(&(caller, _)) = open.last() {
                        low[caller] = low[caller].min(low[id]);
                    }
                    if low[id] == index[id] {
                        let start = members.iter().rposition(|&member| member == id).unwrap_or(0);
                        let component = members.split_off(start);
                        let recurs = component.len() > 1 || edges(id).contains(&id);
                        for member in component {
                            closed[member] = true;
                            order.push((member, recurs));
                        }
                    }
                }
            }
        }
    }
    order
}

fn remove_unused_functions(program: &mut Program) {
    let mut used: SecondaryMap<FuncId, bool> = SecondaryMap::new();
    let mut open: Vec<FuncId> = program.main.into_iter().collect();
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut used[id], true) {
            each_call(&program.functions[id].body, &mut |callee| open.push(callee));
        }
    }
    let mut new: SecondaryMap<FuncId, FuncId> = SecondaryMap::with_default(FuncId(0));
    let mut functions: PrimaryMap<FuncId, Function> = PrimaryMap::new();
    for (id, function) in std::mem::take(&mut program.functions) {
        if used[id] {
            new[id] = functions.push(function);
        }
    }
    for function in functions.values_mut() {
        rename_calls(&mut function.body, &new);
    }
    program.functions = functions;
    program.main = program.main.map(|main| new[main]);
}

fn rename_calls(block: &mut Block, new: &SecondaryMap<FuncId, FuncId>) {
    for stmt in &mut block.stmts {
        match &mut stmt.op {
            Op::Call(callee) | Op::Sequential(_, callee) | Op::Loop(_, callee) => *callee = new[*callee],
            Op::If(branches) => {
                rename_calls(&mut branches.0, new);
                rename_calls(&mut branches.1, new);
            }
            Op::Vector(..) | Op::Const(_) | Op::Check(_) | Op::Foreign(_) | Op::Small => {}
        }
    }
}

type InlineRule<'a> = dyn Fn(FuncId, usize) -> bool + 'a;

/// Numbers of operations of functions.
type Sizes = SecondaryMap<FuncId, usize>;

struct Rebuild<'a> {
    program: &'a Program,
    inlinable: &'a InlineRule<'a>,
    sizes: &'a Sizes,
    b: Builder,
    size: usize,
}

/// Maps from vectors and spaces of one function to those of the function being built.
#[derive(Default)]
struct Names {
    vars: SecondaryMap<VarId, PackedOption<VarId>>,
    spaces: SecondaryMap<SpaceId, PackedOption<SpaceId>>,
    /// The place of all statements, for functions of the library.
    span: Option<Span>,
}

impl<'a> Rebuild<'a> {
    fn run(program: &'a Program, id: FuncId, inlinable: &'a InlineRule<'a>, sizes: &'a Sizes) -> Function {
        let old = &program.functions[id];
        let b = Builder::new(old.name.clone(), old.source.clone());
        let mut this = Rebuild { program, inlinable, sizes, b, size: sizes[id] };
        let mut names = Names::default();
        for &param in &old.params {
            let known = old.vars[param];
            let space = this.space(&mut names, known.space);
            let new = this.b.param(known.ty, space);
            names.vars[param] = new.into();
        }
        let results = this.stmts(old, &old.body, &mut names);
        this.b.finish(results)
    }

    fn space(&mut self, names: &mut Names, space: SpaceId) -> SpaceId {
        let known = &mut names.spaces[space];
        let new = known.expand().unwrap_or_else(|| self.b.space());
        *known = new.into();
        new
    }

    /// Rebuilds the statements of a block and returns its results.
    fn stmts(&mut self, old: &'a Function, block: &'a Block, names: &mut Names) -> Vec<VarId> {
        for stmt in &block.stmts {
            self.b.span = names.span.unwrap_or(stmt.span);
            let args: Vars = stmt.args.iter().filter_map(|var| names.vars[*var].expand()).collect();
            let new = match &stmt.op {
                Op::Call(callee) if (self.inlinable)(*callee, self.size) => {
                    self.size += self.sizes[*callee];
                    let callee = &self.program.functions[*callee];
                    self.call(callee, &args)
                }
                Op::If(branches) => {
                    let then = self.block(old, &branches.0, names);
                    let otherwise = self.block(old, &branches.1, names);
                    self.defined(old, stmt, names, Op::If(Box::new((then, otherwise))), args)
                }
                Op::Call(_) | Op::Sequential(..) | Op::Loop(..) => self.defined(old, stmt, names, stmt.op.clone(), args),
                Op::Vector(op, ty) => {
                    let spaces: SmallVec<[_; 4]> =
                        stmt.results.iter().map(|&var| (old.vars[var].ty, self.space(names, old.vars[var].space))).collect();
                    self.b.simplified(*op, *ty, args, &spaces)
                }
                Op::Const(_) | Op::Check(_) | Op::Foreign(_) | Op::Small => {
                    let spaces: SmallVec<[_; 4]> =
                        stmt.results.iter().map(|&var| (old.vars[var].ty, self.space(names, old.vars[var].space))).collect();
                    self.b.push(stmt.op.clone(), args, &spaces)
                }
            };
            for (&var, new) in stmt.results.iter().zip(new) {
                // An equal operation may have been found whose result has another name for the space.
                let (space, found) = (self.space(names, old.vars[var].space), self.b.space_of(new));
                self.b.join_spaces(found, space);
                names.vars[var] = new.into();
            }
        }
        block.results.iter().filter_map(|var| names.vars[*var].expand()).collect()
    }

    fn block(&mut self, old: &'a Function, block: &'a Block, names: &mut Names) -> Block {
        self.b.open();
        let results = self.stmts(old, block, names);
        self.b.close(results)
    }

    fn defined(&mut self, old: &Function, stmt: &Stmt, names: &mut Names, op: Op, args: Vars) -> Vars {
        let mut results = Vars::new();
        for &var in &stmt.results {
            let space = self.space(names, old.vars[var].space);
            results.push(self.b.var(old.vars[var].ty, space));
        }
        self.b.define(op, args, results.clone());
        results
    }

    /// Inserts the code of a function.
    fn call(&mut self, callee: &'a Function, args: &[VarId]) -> Vars {
        let before = self.b.span;
        let place = if callee.source.is_none() { Some(before) } else { None };
        let mut names = Names { span: place, ..Names::default() };
        for (&param, &arg) in callee.params.iter().zip(args) {
            let found = self.b.space_of(arg);
            let known = &mut names.spaces[callee.vars[param].space];
            let space = known.expand().unwrap_or(found);
            *known = space.into();
            self.b.join_spaces(space, found);
            names.vars[param] = arg.into();
        }
        let results = self.stmts(callee, &callee.body, &mut names);
        self.b.span = before;
        results.into()
    }
}

//! Translation of a function in SSA form with uniform branches to LLVM code for one warp, or for all warps of a
//! block.

use super::emitter::{CallTarget, Emitter, TranslationError, TranslationResult};
use super::lanes::Shapes;
use super::llvm::{Ir, Val};
use super::machine::Host;
use super::nans::Nans;
use super::options::Checks;
use super::plan::CurrentPiece;
use super::state::{BlockChecks, NonTemporalArrays, Specials};
use crate::abi::{self, Kind};
use crate::code::{Accesses, FaultSite, RareInstruction};
use broadloom_analysis::Cfg;
use broadloom_eval::matrix::Product;
use broadloom_ptx::{Func, Function, Inst, Module};
use cranelift_entity::SecondaryMap;
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

/// Input of an emitter.
pub(crate) struct Input<'e> {
    pub(crate) ir: &'e Ir,
    pub(crate) module: &'e Module,
    pub(crate) function: &'e Function,
    pub(crate) shapes: &'e Shapes,
    pub(crate) host: Host,
    pub(crate) block: [u32; 3],
    pub(crate) kind: Kind,
    pub(crate) layout: &'e super::layout::Layout,
    pub(crate) callees: &'e BTreeMap<Func, CallTarget>,
    pub(crate) cluster: crate::cluster::ClusterShape,
    pub(crate) stack_limit: Option<u64>,
    pub(crate) polls: &'e HashSet<Inst>,
    pub(crate) checks: Checks,
}

/// Results of an emitter besides the code.
#[derive(Default)]
pub(crate) struct EmitterOutput {
    pub(crate) rare: Vec<RareInstruction>,
    pub(crate) sites: Vec<FaultSite>,
    pub(crate) loads: Accesses,
    pub(crate) stores: Accesses,
    pub(crate) exchanges: u32,
    pub(crate) products: Vec<(Product, Val)>,
    pub(crate) kept_bytes: u64,
    pub(crate) stream_bytes: u64,
}

/// Translates a function into the body of the one that `input.ir` has begun. `output` continues the results
/// of other functions.
pub(crate) fn emit(input: Input<'_>, output: EmitterOutput) -> TranslationResult<EmitterOutput> {
    let ir = input.ir;
    let entry = ir.block("entry");
    ir.go_on_in(entry);
    let warp = ir.argument(0);
    let passed = (!input.function.is_kernel).then(|| (ir.argument(1), ir.argument(2)));
    let services = ir.load_invariant(ir.pointer(), ir.offset_by(warp, abi::offset::SERVICES), 8);
    // A called function does not iterate over warps.
    let kind = if input.function.is_kernel || input.kind == Kind::Threads { input.kind } else { Kind::Warps };
    let done = match kind {
        // Each piece has its own label.
        Kind::Block => entry,
        Kind::Warps | Kind::Threads => ir.block("done"),
    };
    let lanes = (input.kind != Kind::Threads).then_some(32);
    let i32 = ir.int(32);
    let entered = passed.filter(|_| lanes.is_some()).map(|_| Emitter::entered(ir));
    let first = match kind {
        Kind::Block => ir.constant(i32, 0),
        Kind::Warps | Kind::Threads => {
            let load = || ir.load_invariant(i32, ir.offset_by(warp, abi::offset::FIRST), 4);
            entered.map_or_else(load, |entered| entered.first)
        }
    };
    let streamed = output.stream_bytes;
    let nans = Nans::new(input.function);
    let mut emitter = Emitter {
        ir,
        module: input.module,
        function: input.function,
        shapes: input.shapes,
        host: input.host,
        block: input.block,
        lanes,
        layout: input.layout,
        warp,
        services,
        first,
        specials: Specials::default(),
        values: SecondaryMap::new(),
        nans,
        done,
        rare: output.rare,
        sites: output.sites,
        at: None,
        polls: input.polls,
        loads: output.loads,
        stores: output.stores,
        exchanges: output.exchanges,
        products: output.products,
        rooms: vec![],
        passed,
        exists: None,
        threads: None,
        frame_start: entered.map_or(ir.constant(ir.int(64), 0), |entered| entered.frame),
        stack_limit: input.stack_limit,
        rows: vec![],
        frame: None,
        sink: Cell::new(None),
        callees: input.callees,
        cluster: input.cluster,
        labels: SecondaryMap::new(),
        definitions: SecondaryMap::new(),
        used: SecondaryMap::new(),
        in_block: kind == Kind::Block,
        plan: None,
        current: CurrentPiece::default(),
        states: None,
        kept_bytes: output.kept_bytes,
        counters: None,
        streams: NonTemporalArrays::default(),
        ahead: SecondaryMap::new(),
        checks: input.checks,
        checked: BlockChecks::default(),
        lines: None,
    };
    for (inst, data) in input.function.instructions() {
        for reg in data.writes() {
            emitter.definitions[reg] = Some(inst);
        }
        for reg in data.reads() {
            emitter.used[reg] = true;
        }
    }
    for edge in input.function.blocks.values().flat_map(|block| &block.edges) {
        for reg in &edge.args {
            emitter.used[*reg] = true;
        }
    }
    if input.kind == Kind::Threads && input.layout.local_bytes > 0 {
        let bytes = ir.vector(ir.int(8), input.layout.local_bytes as u32);
        emitter.frame = Some(ir.stack(bytes, 64));
    }
    let cfg = Cfg::new(input.function).ok_or_else(|| TranslationError("a kernel without a body".into()))?;
    match kind {
        Kind::Block => {
            emitter.make_rows();
            emitter.streams = emitter.find_streams();
            emitter.whole_block(&cfg)?;
        }
        Kind::Warps | Kind::Threads => {
            emitter.begin_warp(first);
            if let Some(entered) = entered {
                emitter.exists = Some(emitter.as_predicates(entered.lanes));
            }
            emitter.make_rows();
            emitter.take_parameters();
            emitter.blocks(&cfg, cfg.order(), cfg.entry(), &mut SecondaryMap::new())?;
            ir.go_on_in(done);
            ir.ret();
        }
    }
    let Emitter { rare, sites, loads, stores, exchanges, products, kept_bytes, streams, .. } = emitter;
    Ok(EmitterOutput {
        rare,
        sites,
        loads,
        stores,
        exchanges,
        products,
        kept_bytes,
        stream_bytes: streamed + streams.thread_bytes,
    })
}

//! Kernels of cuts.

pub(crate) mod ahead;
mod components;
mod emitter;
pub(super) mod memory;
mod registers;
mod span;
mod staging;

use super::cut::{BufferPlace, Cut, Shape};
use super::section::{Buffer, Section};
use super::wiring::anchors;
use ahead::PrefetchedTile;
use broadloom_scalar::{Axis, Element, Memory, Precision, Type, Unroll, Value};
use broadloom_skeleton::kit::{Draft, Writer};
use broadloom_skeleton::{Argument, Count, Output, Program, Result};
use emitter::Emitter;
use memory::{BufferMemory, KernelBuffer};
use span::{BlockValues, units_of_tile};

/// Options of the program of a cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmitOptions {
    /// True if all buffers are aligned to accesses of 16 bytes.
    pub(crate) wide: bool,
    pub(crate) precision: Precision,
    /// Maximum number of blocks of a program that prefetches.
    pub(crate) blocks: Option<u64>,
}

/// Writes the program of a cut.
///
/// Its inputs and outputs are the global buffers in the order of the section, then the flag of failed
/// firings. `starts` are the numbers of their first items. Its size is the number of units. Its scalar is the
/// number of the first unit.
pub(crate) fn program(section: &Section, cut: &Cut, name: &str, starts: &[i64], options: EmitOptions) -> Result<Program> {
    let EmitOptions { wide, precision, blocks } = options;
    let mut draft = drafted(name, precision);
    let number = draft.scalar(Type::I32);
    let mut arguments = vec![None; section.buffers.len()];
    for (index, (place, buffer)) in cut.places.iter().zip(&section.buffers).enumerate() {
        let ty = Type::of(buffer.words.element);
        match place {
            BufferPlace::Read | BufferPlace::Staged(_) | BufferPlace::Loaded => {
                arguments[index] = Some(Argument::Input(draft.input(ty)))
            }
            BufferPlace::Written | BufferPlace::Collected(_) | BufferPlace::Kept => {
                arguments[index] = Some(Argument::Output(draft.output(Output { ty, count: Count::Constant(0) })));
            }
            BufferPlace::Local | BufferPlace::Shared(_) | BufferPlace::Elsewhere => {}
        }
    }
    let flag = draft.output(Output { ty: Type::U32, count: Count::Constant(1) });
    let block = [cut.threads, 1, 1];
    let k = Writer::new(name, block);
    k.prefer(precision);
    let all = k.convert(k.count(Count::size(0), Type::U32), Type::I32);
    let all = k.assume(all, 0, 1 << 30);
    let whole = if cut.extra == 0 { all } else { k.add(all, cut.extra) };
    let per_block = units_of_tile(cut);
    let block_number = k.convert(k.block(Axis::X), Type::I32);
    let thread = k.convert(k.thread(Axis::X), Type::I32);
    let bad = k.variable_with(k.literal(false));
    let arena = (cut.shared_bytes > 0).then(|| k.shared(Element::U8, cut.shared_bytes as u32));
    let tables: Vec<[Vec<(i64, i64)>; 2]> = (0..section.actors.len()).map(|index| tables(section, cut, index)).collect();
    let first = k.scalar(number, Type::I32);
    let maker = Tiles { section, cut, k: &k, starts, arguments: &arguments, arena, tables: &tables, bad, wide };
    let values = BlockValues { thread, all, whole, first };
    match blocks {
        None => maker.tile(block_number, values, None),
        Some(_) => {
            let global = maker.global(k.literal(0i32));
            let ahead = PrefetchedTile::new(&k, section, cut, starts, &global, values, block_number);
            let tiles = k.div(k.add(whole, per_block - 1), per_block);
            let blocks = k.convert(k.grid_size(Axis::X), Type::I32);
            k.for_step(block_number, tiles, blocks, Unroll::Never, |tile| {
                maker.tile(tile, values, Some((&ahead, k.add(tile, blocks))));
                // The next tile overwrites this one.
                k.barrier();
            });
        }
    }
    if cut.actors.iter().any(|index| section.actors[*index].code.fails) {
        let flag = k.memory(Argument::Output(flag), Element::U32);
        k.if_then(k.get(bad), || k.store(flag, k.literal(0u32), k.literal(1u32)));
    }
    let tiles = (Count::size(0) + Count::Constant(cut.extra as u64)).div_ceil(Count::Constant(per_block as u64));
    let grid = blocks.map_or(tiles.clone(), |most| tiles.min(Count::Constant(most)));
    draft.launch(k, [grid, 1u32.into(), 1u32.into()], block)?;
    Ok(draft.finish())
}

/// A writer of tiles: the units that a block runs together.
struct Tiles<'t> {
    section: &'t Section,
    cut: &'t Cut,
    k: &'t Writer,
    starts: &'t [i64],
    arguments: &'t [Option<Argument>],
    arena: Option<Memory>,
    tables: &'t [[Vec<(i64, i64)>; 2]],
    bad: broadloom_scalar::Variable,
    wide: bool,
}

impl Tiles<'_> {
    /// Returns the buffers in global memory for the units from `unit` on.
    fn global(&self, unit: Value) -> Vec<Option<KernelBuffer>> {
        let k = self.k;
        let held = |(index, buffer): (usize, &Buffer)| {
            self.cut.extents[index]?;
            let words = buffer.words;
            let argument = self.arguments[index].clone()?;
            let store = BufferMemory::Memory(k.memory(argument, words.element));
            Some(KernelBuffer { store, start: self.starts[index], base: Some(k.mul(unit, buffer.items)), words, padding: 0 })
        };
        self.section.buffers.iter().enumerate().map(held).collect()
    }

    /// Writes a tile. If registers hold its words, those of another tile are loaded before it is computed.
    fn tile(&self, tile: Value, values: BlockValues, ahead: Option<(&PrefetchedTile, Value)>) {
        let BlockValues { thread, all, whole, first } = values;
        let Tiles { section, cut, k, arena, bad, wide, .. } = *self;
        let (unit, units) = match cut.shape {
            Shape::Thread | Shape::Firing | Shape::Spectrum(_) => {
                (k.mul(k.add(k.mul(tile, cut.threads), thread), cut.per_thread), None)
            }
            Shape::Block(units) => {
                let unit = k.mul(tile, units);
                (unit, Some(k.min(k.sub(whole, unit), units)))
            }
        };
        let mut held = vec![None; section.buffers.len()];
        let global = self.global(unit);
        for (index, (place, buffer)) in cut.places.iter().zip(&section.buffers).enumerate() {
            let (words, element) = (buffer.words, buffer.words.element);
            let Some(extent) = cut.extents[index] else { continue };
            let length = extent.len() * i64::from(words.count);
            let shared = |at: u64| arena.map(|arena| BufferMemory::Memory(k.shared_view(arena, element, at as u32)));
            let block = |store: BufferMemory| KernelBuffer { store, start: extent.start, base: None, words, padding: 0 };
            let padding = cut.padding(section, index) as u32;
            held[index] = match (place, cut.shape) {
                (BufferPlace::Read | BufferPlace::Written | BufferPlace::Loaded | BufferPlace::Kept, _) => global[index],
                (BufferPlace::Local, _) => Some(block(BufferMemory::Local(k.array(element, length as u32)))),
                (BufferPlace::Shared(at), _) | (BufferPlace::Staged(at) | BufferPlace::Collected(at), Shape::Block(_)) => {
                    shared(*at).map(|store| KernelBuffer { padding, ..block(store) })
                }
                (BufferPlace::Staged(at) | BufferPlace::Collected(at), Shape::Thread | Shape::Firing | Shape::Spectrum(_)) => {
                    let base = Some(k.mul(thread, buffer.items));
                    shared(*at).map(|store| KernelBuffer { padding, base, ..block(store) })
                }
                (BufferPlace::Elsewhere, _) => None,
            };
        }
        let (ahead, next) = ahead.unzip();
        let emitter = Emitter { section, cut, k, held, global, unit, units, all, bad, wide, ahead, anchors: self.tables };
        let load_next = || {
            if let Some((ahead, next)) = ahead.zip(next) {
                ahead.load(k, next);
            }
        };
        match cut.shape {
            Shape::Thread | Shape::Firing | Shape::Spectrum(_) => {
                let of_block = k.mul(tile, cut.threads);
                let units = k.min(k.sub(whole, of_block), cut.threads);
                let full = i64::from(cut.threads);
                if emitter.copy(true, of_block, units, full, thread) {
                    load_next();
                    k.barrier();
                }
                match cut.places.iter().any(|place| matches!(place, BufferPlace::Loaded | BufferPlace::Kept)) {
                    true => emitter.by_registers(first, whole),
                    false => k.if_then(k.lt(unit, whole), || emitter.by_thread(first)),
                }
                if cut.places.iter().any(|place| matches!(place, BufferPlace::Collected(_))) {
                    k.barrier();
                    emitter.copy(false, of_block, units, full, thread);
                }
            }
            Shape::Block(_) => emitter.by_block(first, thread, &load_next),
        }
    }
}

/// Returns an empty draft. In accurate programs, products are rounded before they are added.
pub(super) fn drafted(name: &str, precision: Precision) -> Draft {
    let mut draft = Draft::new(name, 1);
    if precision == Precision::Accurate {
        draft.keep_products();
    }
    draft
}

/// Returns the tables of an actor's windows.
fn tables(section: &Section, cut: &Cut, index: usize) -> [Vec<(i64, i64)>; 2] {
    let actor = &section.actors[index];
    [&actor.input, &actor.output].map(|port| match port {
        Some(port) if cut.actors.binary_search(&index).is_ok() && !port.steps.is_empty() && port.rate > 0 => {
            anchors(&port.steps, port.start, port.rate, port.seen, actor.firings)
        }
        _ => vec![],
    })
}

//! Races, and reads through caches that are not coherent.

use super::history::{AccessEffect, Clash, Effect, Record, Strength, View, Width};
use super::shadow::Area;
use super::{BlamedInst, Checker, FindingKind};
use crate::cta::{CodeSite, Cta};
use crate::op::{Handler, Machine};
use crate::watch::{Access, ByteMemory, Kind, Order, Scope};
use broadloom_ptx::{Modifier, Opcode, Type};

/// Returns the manner of an access.
pub(super) fn manner(site: CodeSite<'_>, access: Access) -> AccessEffect {
    let strong = access.kind == Kind::Atomic || access.order != Order::Weak;
    // Lanes that rely on lockstep execution do so in shared memory.
    let in_block = matches!(access.home, ByteMemory::Shared);
    let strength = match access.scope {
        _ if !strong => Strength::Weak,
        _ if in_block && access.kind != Kind::Atomic && site.op.has(Modifier::Volatile) => Strength::Volatile,
        Scope::Cta => Strength::Cta,
        Scope::Gpu | Scope::System => Strength::Wide,
    };
    let effect = match access.kind {
        Kind::Read => Effect::Read,
        Kind::Write => Effect::Write,
        Kind::Atomic => Effect::Atomic(width(site, access)),
    };
    AccessEffect { effect, strength }
}

/// Returns the bytes that an atomic changes at once. Elements of vectors and of packed types are separate.
fn width(site: CodeSite<'_>, access: Access) -> Width {
    let of_type = matches!(site.op.handler, Handler::Machine(Machine::Atomic | Machine::ReduceAsync));
    Width::of(match site.op.ty {
        _ if !of_type => access.bytes,
        Type::F16x2 | Type::Bf16x2 => 2,
        ty => u64::from(ty.bytes()),
    })
}

/// Returns what an instruction reads with if its cache does not see writes of the same launch.
fn cache_of(site: CodeSite<'_>) -> Option<&'static str> {
    if site.op.opcode == Opcode::Ldu {
        Some("`ldu`")
    } else if matches!(site.op.opcode, Opcode::Tex | Opcode::Tld4) {
        Some("a texture")
    } else {
        site.op.has(Modifier::Nc).then_some("`ld.global.nc`")
    }
}

impl Checker<'_> {
    /// Checks an access against the earlier ones of other threads, and records it.
    pub(super) fn check_race(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        let block = cta.number as u32;
        let Some(area) = Area::of(access.home, block) else { return };
        let manner = manner(site, access);
        let cache = cache_of(site).filter(|_| matches!(access.home, ByteMemory::Device(_)));
        let shadow = self.blocks.of(cta.number);
        shadow.is_volatile |= manner.strength == Strength::Volatile;
        let thread = &shadow.threads[site.thread];
        let view = View { block, clock: &thread.clock, met: &thread.met };
        let (func, inst) = (site.func, site.op.inst);
        let record = Record { block, thread: site.thread as u16, time: thread.time, func, inst, manner };
        let reads_data = |func, inst| self.volatile_loads.reads_data(self.program, func, inst);
        let (mut clash, mut written) = (None, None);
        for place in self.shadow.places(area, access.offset, access.bytes) {
            clash = clash.or_else(|| place.clash(&record, &view, reads_data));
            if cache.is_some() {
                written = written.or_else(|| place.writer());
            }
            place.add(record, &view);
        }
        if let (Some(cache), Some(writer)) = (cache, written) {
            let message = format!(
                "{cache} reads global memory{} that the same launch has written; its cache may hold the old value, whatever \
                 orders the two",
                self.at(access)
            );
            self.report(cta, site, FindingKind::NonCoherent, None, message, Some(&writer));
            return;
        }
        match clash {
            None => {}
            // The check of the mbarrier itself reports more about that.
            Some(Clash::Race(other)) if self.is_use_of_mbarrier(site, &other) => {}
            Some(Clash::Race(other)) => {
                let message = self.race_message(access, manner, other.manner);
                let place = BlamedInst { func, inst, thread: site.thread };
                let race = self.report_at(cta, place, FindingKind::Race, None, message, Some(&other));
                if let (true, Some(race)) = (manner.writes(), race) {
                    self.explain_unwritten(cta, &record, area, access, race);
                }
            }
            Some(Clash::Lanes(other)) => {
                let message = format!(
                    "a race between lanes of a warp in shared memory{}: one lane {} what another {}, both volatile, with no \
                     `__syncwarp()` between them; lanes do not run in step",
                    self.at(access),
                    does(manner),
                    does(other.manner)
                );
                self.report(cta, site, FindingKind::Race, None, message, Some(&other));
            }
        }
    }

    fn race_message(&self, access: Access, manner: AccessEffect, other: AccessEffect) -> String {
        let space = if matches!(access.home, ByteMemory::Shared | ByteMemory::Peer(_)) { "shared" } else { "global" };
        let at = self.at(access);
        match manner.different_widths(other) {
            Some((width, other)) => format!(
                "a race in {space} memory{at}: an atomic of {} bytes and one of {} bytes, which are not atomic to each other, \
                 with nothing to order them",
                width.bytes(),
                other.bytes()
            ),
            None => format!(
                "a race in {space} memory{at}: one thread {} what another {}, with nothing to order them",
                does(manner),
                does(other)
            ),
        }
    }
}

fn does(manner: AccessEffect) -> &'static str {
    if manner.writes() { "writes" } else { "reads" }
}

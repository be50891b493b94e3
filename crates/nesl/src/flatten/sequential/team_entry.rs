//! The kernel of the form for teams. The grid is initially one team, which is split among the calls.

use super::code::{Class, Code, Kind, Reg};
use super::entry::Entry;
use super::{CallResults, FrameRegisters, Module, Signature};
use crate::vcode::Shape;
use crate::vcode::team::{SYNC, THREADS};
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier as M, Special};

impl Module<'_, '_> {
    /// Writes the kernel for a function: the forms for teams and for warps.
    pub(super) fn team_entry(
        &self,
        name: &str,
        (of_team, of_warp): (&Signature, &Signature),
        argument: &Shape,
        result: &Shape,
    ) -> String {
        let mut code = Code::new(self.widths, true);
        let [state, arena, bytes, limit, sync] = [(); 5].map(|()| code.reg(Class::B64));
        let [wide, deep, all, queue] = [(); 4].map(|()| code.reg(Class::B64));
        let [calls, depth, call] = [(); 3].map(|()| code.reg(Class::B32));
        let (failed, next, finished, end) = (code.label(), code.label(), code.label(), code.label());
        let mut e = Entry { code, params: vec![], state, call, top: arena, limit, failed, next: finished, sequences: 0 };
        for to in [state, arena, bytes, wide, deep, all, queue] {
            e.load_param(to);
        }
        e.code.to(calls).cvt((M::U32, M::U64), wide);
        e.code.to(depth).cvt((M::U32, M::U64), deep);
        e.code.to(limit).add(M::U64, arena, bytes);
        e.code.to(sync).add(M::U64, queue, SYNC);
        let team = e.code.team_regs(sync);
        let [blocks, threads] = [(); 2].map(|()| e.code.reg(Class::B32));
        e.code.to(team.first).mov(M::U32, 0);
        e.code.to(blocks).mov(M::U32, Special::NctaidX);
        e.code.to(threads).mov(M::U32, Special::NtidX);
        e.code.to(threads).shr(M::U32, threads, 5);
        e.code.to(team.warps).mul((M::Lo, M::U32), blocks, threads);
        e.code.name_team(&team);
        let (mut given, mut taken) = (vec![], vec![]);
        e.given(argument, false, &mut given);
        e.taken(result, false, &mut taken);

        let none = e.code.length(0);
        let weight = e.weight(argument, &given, (none, calls));
        let parts = e.code.begin_parts(&team, [none, calls, arena, limit, all, weight]);
        let first = e.weight(argument, &given, (parts.low, parts.middle));
        e.code.end_parts(&parts, first);
        e.code.team = Some(parts.team);
        e.code.to(call).mov(M::U32, parts.low);
        let (done, is_failed) = (e.code.reg(Class::Pred), e.code.reg(Class::Pred));
        e.code.place(next);
        e.code.to(done).setp((M::Ge, M::U32), call, parts.high);
        e.code.go_if(done, end);
        let mut regs = vec![];
        e.arguments(argument, &mut given.into_iter(), &mut regs);
        e.pass_bools(&mut regs, &of_team.params);
        let given =
            FrameRegisters { top: parts.base, limit: parts.limit, depth, fuel: parts.fuel, queue: Some(queue), team: None };
        let CallResults { status, mut results, .. } = self.call_in_part(&mut e.code, (of_team, of_warp), &given, &parts, &regs);
        e.code.to(is_failed).setp((M::Ne, M::U32), status, 0);
        e.code.go_if(is_failed, failed);
        e.take_bools(&mut results, &of_team.results);
        e.results(result, &mut results.into_iter(), &mut taken.into_iter());
        e.code.go(finished);
        e.code.place(failed);
        e.flag(1);
        e.code.place(finished);
        e.code.meet();
        e.code.to(call).add(M::U32, call, 1);
        e.code.go(next);
        e.code.place(end);
        e.code.run().ret(());
        let params: Vec<String> = e.params.iter().map(|param| format!(".param .u64 {param}")).collect();
        let (declarations, text) = (e.code.declarations(), &e.code.text);
        // The number of threads limits the number of registers, so that two blocks per multiprocessor are
        // resident.
        format!(
            ".visible .entry {name}({})\n.maxntid {THREADS}, 1, 1\n.minnctapersm 2\n{{\n{declarations}{text}}}\n",
            params.join(", ")
        )
    }
}

impl Entry {
    /// Returns the weight of the calls of a range. `given` has the addresses of the arguments.
    fn weight(&mut self, argument: &Shape, given: &[Reg], (low, high): (Reg, Reg)) -> Reg {
        let summed = self.code.begin_sum(low, high);
        let mut lengths = vec![];
        addresses(argument, &mut given.iter().copied(), &mut lengths);
        let lengths: Vec<Reg> = lengths
            .into_iter()
            .map(|address| {
                let length = self.code.load_at(Kind::Int, address, summed.index);
                self.code.as_length(length)
            })
            .collect();
        self.code.end_sum(&summed, &lengths)
    }
}

/// Lists the addresses of the lengths of flat sequences.
fn addresses(shape: &Shape, given: &mut dyn Iterator<Item = Reg>, out: &mut Vec<Reg>) {
    match shape {
        Shape::Int | Shape::Float | Shape::Bool => drop(given.next()),
        Shape::Tuple(parts) => parts.iter().for_each(|part| addresses(part, given, out)),
        Shape::Seq(element) => {
            given.next();
            out.extend(given.next());
            addresses(element, given, &mut vec![]);
        }
    }
}

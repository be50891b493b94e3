//! The kernel of the form for teams. The grid is initially one team, which is split among the calls.

use super::code::{Class, Code, Kind, Reg, emit};
use super::entry::Entry;
use super::{CallResults, FrameRegisters, Module, Signature};
use crate::vcode::Shape;
use crate::vcode::team::{SYNC, THREADS};

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
        emit!(e.code, "cvt.u32.u64 {calls}, {wide};");
        emit!(e.code, "cvt.u32.u64 {depth}, {deep};");
        emit!(e.code, "add.u64 {limit}, {arena}, {bytes};");
        emit!(e.code, "add.u64 {sync}, {queue}, {SYNC};");
        let team = e.code.team_regs(sync);
        let [blocks, threads] = [(); 2].map(|()| e.code.reg(Class::B32));
        emit!(e.code, "mov.u32 {}, 0;", team.first);
        emit!(e.code, "mov.u32 {blocks}, %nctaid.x;");
        emit!(e.code, "mov.u32 {threads}, %ntid.x;");
        emit!(e.code, "shr.u32 {threads}, {threads}, 5;");
        emit!(e.code, "mul.lo.u32 {}, {blocks}, {threads};", team.warps);
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
        emit!(e.code, "mov.u32 {call}, {};", parts.low);
        let (done, is_failed) = (e.code.reg(Class::Pred), e.code.reg(Class::Pred));
        e.code.place(next);
        emit!(e.code, "setp.ge.u32 {done}, {call}, {};", parts.high);
        e.code.go_if(done, end);
        let mut regs = vec![];
        e.arguments(argument, &mut given.into_iter(), &mut regs);
        e.pass_bools(&mut regs, &of_team.params);
        let given =
            FrameRegisters { top: parts.base, limit: parts.limit, depth, fuel: parts.fuel, queue: Some(queue), team: None };
        let CallResults { status, mut results, .. } = self.call_in_part(&mut e.code, (of_team, of_warp), &given, &parts, &regs);
        emit!(e.code, "setp.ne.u32 {is_failed}, {status}, 0;");
        e.code.go_if(is_failed, failed);
        e.take_bools(&mut results, &of_team.results);
        e.results(result, &mut results.into_iter(), &mut taken.into_iter());
        e.code.go(finished);
        e.code.place(failed);
        e.flag(1);
        e.code.place(finished);
        e.code.meet();
        emit!(e.code, "add.u32 {call}, {call}, 1;");
        e.code.go(next);
        e.code.place(end);
        emit!(e.code, "ret;");
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

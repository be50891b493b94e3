//! Removable pieces of a random kernel: every instruction except those that end functions and count loops,
//! and whole calls with their parameters.
//!
//! Every register is set before the first statement, so most reduced kernels are valid. If not, because an
//! address or a barrier was removed, the interpreter's checks report it.

use std::ops::Range;

/// Returns the lines of each piece, in order.
pub(super) fn of(text: &str) -> Vec<Range<usize>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut pieces = vec![];
    let mut at = 0;
    while at < lines.len() {
        match call_behind(&lines, at) {
            Some(end) => {
                pieces.push(at..end);
                at = end;
            }
            None => {
                if may_go(lines[at]) {
                    pieces.push(at..at + 1);
                }
                at += 1;
            }
        }
    }
    pieces
}

/// Returns the end of the block with a call that a line opens.
fn call_behind(lines: &[&str], at: usize) -> Option<usize> {
    let is_inside = lines[at] == "{" && lines.get(at + 1)?.starts_with(".param");
    let length = lines[at..].iter().position(|line| *line == "}").filter(|_| is_inside)?;
    Some(at + length + 1)
}

/// Tests if a line is an instruction that can be removed separately.
fn may_go(line: &str) -> bool {
    let Some(instruction) = line.strip_suffix(';') else { return false };
    let word = match instruction.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ').map_or("", |(_, rest)| rest),
        None => instruction,
    };
    let (opcode, operands) = word.split_once(' ').unwrap_or((word, ""));
    let result = operands.split([',', '|', '}']).next().unwrap_or_default().trim();
    // Without these a loop does not end.
    let counts = result == "%c" || result.starts_with("%n");
    let opcode: Vec<&str> = opcode.split('.').collect();
    match opcode[0] {
        "" | "brx" | "call" | "ret" | "exit" | "trap" => false,
        "st" | "ld" if opcode.get(1) == Some(&"param") => false,
        _ => !counts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_go_and_the_frame_stays() {
        let goes = [
            "add.u32 %r1, %r2, 3;",
            "@!%p1 mov.b64 {%r1, %r2}, %d0;",
            "ld.global.b32 %r1, [%in+4];",
            "@%c bra $L1;",
            "selp.u32 %x0, 1, 0, %p1;",
        ];
        assert!(goes.iter().all(|line| may_go(line)), "{goes:?}");
        let stays = [
            ".reg .b32 %r<4>;",
            "and.b32 %n0, %r1, 3;",
            "setp.gt.s32 %c, %n0, 0;",
            "ld.param.u64 %in, [input];",
            "$L1:",
            "ret;",
            "}",
        ];
        assert!(stays.iter().all(|line| !may_go(line)), "{stays:?}");
    }

    #[test]
    fn a_call_goes_with_its_parameters() {
        let text = "add.u32 %r1, %r1, 1;\n{\n.param .b32 p0;\nst.param.b32 [p0], %r1;\ncall f, (p0);\n}\nret;\n";
        assert_eq!(of(text), [0..1, 1..6]);
        assert_eq!(of(".entry k()\n{\n.reg .b32 %r<2>;\nneg.s32 %r0, %r1;\nret;\n}\n").first(), Some(&(3..4)));
    }
}

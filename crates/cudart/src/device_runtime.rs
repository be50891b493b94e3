//! CUDA device runtime functions that kernels call: graph conditions and grid-wide cooperative groups.
//!
//! NVIDIA's `libcudadevrt` implements them with driver calls. Here each function has a body in PTX, which
//! replaces its declaration in a module ([`define`]). The handle of a grid is the address of its barrier.
//! `%envreg1` and `%envreg2` hold this address in a cooperative launch, and 0 in any other launch. The word
//! at offset 4 counts arrivals: each block adds 1, and the first block adds the rest up to 2³¹, so the top
//! bit flips with the last arrival.

/// Functions and their bodies.
const FUNCTIONS: [(&str, &str); 6] = [
    (
        "cudaGraphSetConditional",
        "(.param .b64 handle, .param .b32 value)
{
\t.reg .b64 %rd<2>;
\t.reg .b32 %r<3>;
\tld.param.u64 %rd1, [handle];
\tld.param.u32 %r1, [value];
\tatom.global.exch.b32 %r2, [%rd1], %r1;
\tret;
}",
    ),
    (
        "cudaCGGetIntrinsicHandle",
        "(.param .b32 scope)
{
\t.reg .pred %p;
\t.reg .b64 %rd<3>;
\t.reg .b32 %r<4>;
\tld.param.u32 %r1, [scope];
\tmov.u32 %r2, %envreg2;
\tmov.u32 %r3, %envreg1;
\tmov.b64 %rd1, {%r2, %r3};
\tsetp.eq.u32 %p, %r1, 1;
\tselp.b64 %rd2, %rd1, 0, %p;
\tst.param.b64 [result], %rd2;
\tret;
}",
    ),
    ("cudaCGSynchronize", SYNCHRONISE),
    ("cudaCGSynchronizeGrid", SYNCHRONISE),
    (
        "cudaCGGetSize",
        "(.param .b64 threads, .param .b64 grids, .param .b64 handle)
{
\t.reg .pred %p<3>;
\t.reg .b64 %rd<4>;
\t.reg .b32 %r<12>;
\tld.param.u64 %rd1, [threads];
\tld.param.u64 %rd2, [grids];
\tld.param.u64 %rd3, [handle];
\tmov.u32 %r1, %ntid.x;
\tmov.u32 %r2, %ntid.y;
\tmov.u32 %r3, %ntid.z;
\tmov.u32 %r4, %nctaid.x;
\tmov.u32 %r5, %nctaid.y;
\tmov.u32 %r6, %nctaid.z;
\tmul.lo.u32 %r7, %r1, %r2;
\tmul.lo.u32 %r7, %r7, %r3;
\tmul.lo.u32 %r7, %r7, %r4;
\tmul.lo.u32 %r7, %r7, %r5;
\tmul.lo.u32 %r7, %r7, %r6;
\tsetp.eq.u64 %p0, %rd3, 0;
\tselp.u32 %r8, 0, %r7, %p0;
\tselp.u32 %r9, 0, 1, %p0;
\tselp.u32 %r10, 999, 0, %p0;
\tsetp.ne.u64 %p1, %rd1, 0;
\tsetp.ne.u64 %p2, %rd2, 0;
\t@%p1 st.u32 [%rd1], %r8;
\t@%p2 st.u32 [%rd2], %r9;
\tst.param.b32 [result], %r10;
\tret;
}",
    ),
    (
        "cudaCGGetRank",
        "(.param .b64 thread, .param .b64 grid, .param .b64 handle)
{
\t.reg .pred %p<3>;
\t.reg .b64 %rd<4>;
\t.reg .b32 %r<16>;
\tld.param.u64 %rd1, [thread];
\tld.param.u64 %rd2, [grid];
\tld.param.u64 %rd3, [handle];
\tmov.u32 %r1, %ctaid.z;
\tmov.u32 %r2, %nctaid.y;
\tmov.u32 %r3, %ctaid.y;
\tmad.lo.u32 %r1, %r1, %r2, %r3;
\tmov.u32 %r2, %nctaid.x;
\tmov.u32 %r3, %ctaid.x;
\tmad.lo.u32 %r1, %r1, %r2, %r3;
\tmov.u32 %r2, %ntid.z;
\tmov.u32 %r3, %tid.z;
\tmad.lo.u32 %r1, %r1, %r2, %r3;
\tmov.u32 %r2, %ntid.y;
\tmov.u32 %r3, %tid.y;
\tmad.lo.u32 %r1, %r1, %r2, %r3;
\tmov.u32 %r2, %ntid.x;
\tmov.u32 %r3, %tid.x;
\tmad.lo.u32 %r1, %r1, %r2, %r3;
\tsetp.eq.u64 %p0, %rd3, 0;
\tselp.u32 %r4, 0, %r1, %p0;
\tselp.u32 %r5, 999, 0, %p0;
\tsetp.ne.u64 %p1, %rd1, 0;
\tsetp.ne.u64 %p2, %rd2, 0;
\t@%p1 st.u32 [%rd1], %r4;
\t@%p2 st.u32 [%rd2], 0;
\tst.param.b32 [result], %r5;
\tret;
}",
    ),
];

/// Grid barrier: waits for all threads of the grid.
const SYNCHRONISE: &str = "(.param .b64 handle, .param .b32 flags)
{
\t.reg .pred %p<4>;
\t.reg .b64 %rd<2>;
\t.reg .b32 %r<12>;
\tld.param.u64 %rd1, [handle];
\tmov.u32 %r11, 999;
\tsetp.eq.u64 %p0, %rd1, 0;
\t@%p0 bra done;
\tbar.sync 0;
\tmov.u32 %r1, %tid.x;
\tmov.u32 %r2, %tid.y;
\tmov.u32 %r3, %tid.z;
\tor.b32 %r1, %r1, %r2;
\tor.b32 %r1, %r1, %r3;
\tsetp.ne.u32 %p1, %r1, 0;
\t@%p1 bra arrived;
\tmov.u32 %r1, %ctaid.x;
\tmov.u32 %r2, %ctaid.y;
\tmov.u32 %r3, %ctaid.z;
\tor.b32 %r1, %r1, %r2;
\tor.b32 %r1, %r1, %r3;
\tsetp.eq.u32 %p2, %r1, 0;
\tmov.u32 %r4, %nctaid.x;
\tmov.u32 %r5, %nctaid.y;
\tmov.u32 %r6, %nctaid.z;
\tmul.lo.u32 %r4, %r4, %r5;
\tmul.lo.u32 %r4, %r4, %r6;
\tsub.u32 %r5, 0x80000001, %r4;
\tselp.u32 %r6, %r5, 1, %p2;
\tmembar.gl;
\tatom.global.add.u32 %r7, [%rd1+4], %r6;
again:
\tld.volatile.global.u32 %r8, [%rd1+4];
\txor.b32 %r9, %r7, %r8;
\tsetp.ge.s32 %p3, %r9, 0;
\t@%p3 bra again;
\tmembar.gl;
arrived:
\tbar.sync 0;
\tmov.u32 %r11, 0;
done:
\tst.param.b32 [result], %r11;
\tret;
}";

/// Inserts bodies for the device runtime functions that a module declares.
pub(crate) fn define(text: String) -> String {
    FUNCTIONS.iter().fold(text, |text, (name, body)| match declaration(&text, name) {
        Some((range, result)) => {
            // The body uses its own name for the result.
            let result = result.map(|ty| format!("(.param {ty} result) ")).unwrap_or_default();
            format!("{}.visible .func {result}{name}{body}\n{}", &text[..range.start], &text[range.end..])
        }
        None => text,
    })
}

/// Finds the `.extern` declaration of a function. Returns its range and its result type.
fn declaration<'a>(text: &'a str, name: &str) -> Option<(std::ops::Range<usize>, Option<&'a str>)> {
    text.match_indices(".extern").find_map(|(at, word)| {
        let rest = text[at + word.len()..].trim_start().strip_prefix(".func")?.trim_start();
        let (result, rest) = match rest.strip_prefix('(') {
            Some(result) => {
                let (result, rest) = result.split_once(')')?;
                (result.split_whitespace().nth(1), rest.trim_start())
            }
            None => (None, rest),
        };
        let end = at + text[at..].find(';')? + 1;
        rest.strip_prefix(name)?.trim_start().starts_with('(').then_some((at..end, result))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 9.0\n.target sm_75\n.address_size 64\n";

    fn parses(text: &str) -> bool {
        let mut sources = broadloom_diag::Sources::new();
        let id = sources.add("module.ptx", text.to_owned());
        broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).is_ok()
    }

    #[test]
    fn the_setter_is_defined_where_it_is_declared() {
        let declared = format!(
            "{HEAD}.extern .func cudaGraphSetConditional\n(\n\t.param .b64 cudaGraphSetConditional_param_0,\n\t\
             .param .b32 cudaGraphSetConditional_param_1\n)\n;\n.visible .entry k() {{ ret; }}\n"
        );
        let defined = define(declared);
        assert!(
            defined.contains("atom.global.exch") && !defined.contains(".extern") && defined.ends_with("k() { ret; }\n"),
            "{defined}"
        );
        let other = ".extern .func cudaGraphSetConditionalOther(.param .b64 a);".to_owned();
        assert_eq!(define(other.clone()), other);
    }

    #[test]
    fn all_functions_verify() {
        let declared = [
            ".extern .func cudaGraphSetConditional(.param .b64 a, .param .b32 b);",
            ".extern .func  (.param .b64 func_retval0) cudaCGGetIntrinsicHandle\n(\n\t.param .b32 a\n)\n;",
            ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 a, .param .b32 b);",
            ".extern .func (.param .b32 r) cudaCGSynchronizeGrid (.param .b64 a, .param .b32 b);",
            ".extern .func (.param .b32 r) cudaCGGetSize(.param .b64 a, .param .b64 b, .param .b64 c);",
            ".extern .func(.param .b32 r)cudaCGGetRank(.param .b64 a, .param .b64 b, .param .b64 c);",
        ];
        let defined = define(format!("{HEAD}{}\n.visible .entry k() {{ ret; }}\n", declared.join("\n")));
        assert!(!defined.contains(".extern") && defined.matches(".visible .func").count() == FUNCTIONS.len(), "{defined}");
        assert!(parses(&defined), "{defined}");
    }
}

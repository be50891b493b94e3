//! Exported symbols, and the trampolines behind them.
//!
//! A symbol is two instructions: it loads the function's number into a register that no argument uses, and
//! jumps through a table. The initial target is [`first`], which selects the function. From then on a call
//! jumps directly to the function of this library or, on a GPU, to NVIDIA's. Recorded calls go through
//! [`recorded`]. **Neither knows a function's parameters: all argument registers are saved, and possible
//! stack arguments are copied.** Functions of unknown type therefore pass as well.

use super::frame::Frame;
use super::record;
use super::target::target_of;
use crate::functions::OWN;
use std::arch::naked_asm;
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Current target of each function, in the order of the list.
pub(crate) static TABLE: [AtomicPtr<()>; OWN.len()] = [const { AtomicPtr::new(first as *const () as *mut ()) }; OWN.len()];

/// Selects and stores the target of a function.
extern "C" fn choose(frame: &mut Frame) -> *const () {
    let target = target_of(frame.index, recorded as *const ());
    TABLE[frame.index].store(target.cast_mut(), Ordering::Relaxed);
    target
}

/// Number of words copied from the caller's stack, more than any function takes. Reading them is always
/// valid: above a program's first frame lie its arguments and environment, above a thread's first frame its
/// own data.
const STACK_WORDS: usize = 16;

/// Defines the symbol of a function.
#[cfg(target_arch = "x86_64")]
macro_rules! symbol {
    ($name:ident, $index:literal) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(super) extern "C" fn $name() {
            std::arch::naked_asm!(
                concat!("mov r11d, ", $index),
                concat!("jmp qword ptr [rip + {table} + 8 * ", $index, "]"),
                table = sym $crate::pass::entry::TABLE,
            )
        }
    };
}

/// Defines the symbol of a function.
#[cfg(target_arch = "aarch64")]
macro_rules! symbol {
    ($name:ident, $index:literal) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(super) extern "C" fn $name() {
            std::arch::naked_asm!(
                concat!("mov w16, #", $index),
                concat!("adrp x17, {table} + 8 * ", $index),
                concat!("ldr x17, [x17, :lo12:{table} + 8 * ", $index, "]"),
                "br x17",
                table = sym $crate::pass::entry::TABLE,
            )
        }
    };
}
pub(crate) use symbol;

/// Defines naked assembly with the offsets of a [`Frame`]'s fields.
macro_rules! with_frame {
    ($($code:tt)*) => {
        naked_asm!(
            $($code)*
            size = const size_of::<Frame>(),
            words = const offset_of!(Frame, words),
            index = const offset_of!(Frame, index),
            stack = const offset_of!(Frame, stack),
            result = const offset_of!(Frame, result),
            open = const offset_of!(Frame, open),
            hidden = const offset_of!(Frame, hidden),
            floats = const offset_of!(Frame, floats),
        )
    };
}

/// Builds a frame and saves the arguments and the function's number in it.
#[cfg(target_arch = "x86_64")]
macro_rules! keep {
    () => {
        ".cfi_startproc
        push rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        mov rbp, rsp
        .cfi_def_cfa_register rbp
        sub rsp, {size}
        mov [rsp + {words}], rdi
        mov [rsp + {words} + 8], rsi
        mov [rsp + {words} + 16], rdx
        mov [rsp + {words} + 24], rcx
        mov [rsp + {words} + 32], r8
        mov [rsp + {words} + 40], r9
        mov [rsp + {index}], r11
        lea rax, [rbp + 16]
        mov [rsp + {stack}], rax
        xor eax, eax
        mov [rsp + {open}], rax
        mov [rsp + {hidden}], rax
        mov [rsp + {result}], rax
        mov [rsp + {result} + 8], rax
        movups [rsp + {floats}], xmm0
        movups [rsp + {floats} + 16], xmm1
        movups [rsp + {floats} + 32], xmm2
        movups [rsp + {floats} + 48], xmm3
        movups [rsp + {floats} + 64], xmm4
        movups [rsp + {floats} + 80], xmm5
        movups [rsp + {floats} + 96], xmm6
        movups [rsp + {floats} + 112], xmm7
        mov rdi, rsp"
    };
}

/// Restores the arguments.
#[cfg(target_arch = "x86_64")]
macro_rules! bring_back {
    () => {
        "mov rdi, [rsp + {words}]
        mov rsi, [rsp + {words} + 8]
        mov rdx, [rsp + {words} + 16]
        mov rcx, [rsp + {words} + 24]
        mov r8, [rsp + {words} + 32]
        mov r9, [rsp + {words} + 40]
        movups xmm0, [rsp + {floats}]
        movups xmm1, [rsp + {floats} + 16]
        movups xmm2, [rsp + {floats} + 32]
        movups xmm3, [rsp + {floats} + 48]
        movups xmm4, [rsp + {floats} + 64]
        movups xmm5, [rsp + {floats} + 80]
        movups xmm6, [rsp + {floats} + 96]
        movups xmm7, [rsp + {floats} + 112]"
    };
}

/// Handles the first call of a function: selects its target and jumps there.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn first() {
    with_frame!(
        keep!(),
        "call {choose}",
        "mov r10, rax",
        bring_back!(),
        "mov r11, [rsp + {index}]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "jmp r10",
        ".cfi_endproc",
        choose = sym choose,
    )
}

/// Handles a recorded call: calls NVIDIA's function and returns here.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(super) extern "C" fn recorded() {
    with_frame!(
        keep!(),
        "call {enter}",
        "mov r11, rax",
        bring_back!(),
        "sub rsp, 8 * {copied}",
        ".set .Lword, 0",
        ".rept {copied}",
        "mov rax, [rbp + 16 + .Lword]",
        "mov [rsp + .Lword], rax",
        ".set .Lword, .Lword + 8",
        ".endr",
        "call r11",
        "add rsp, 8 * {copied}",
        "mov [rsp + {result}], rax",
        "mov [rsp + {result} + 8], rdx",
        "movups [rsp + {floats}], xmm0",
        "mov rdi, rsp",
        "call {leave}",
        "mov rax, [rsp + {result}]",
        "mov rdx, [rsp + {result} + 8]",
        "movups xmm0, [rsp + {floats}]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        enter = sym record::enter,
        leave = sym record::leave,
        copied = const STACK_WORDS,
    )
}

/// Builds a frame and saves the arguments and the function's number in it.
#[cfg(target_arch = "aarch64")]
macro_rules! keep {
    () => {
        ".cfi_startproc
        stp x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov x29, sp
        .cfi_def_cfa x29, 16
        sub sp, sp, #{size}
        stp x0, x1, [sp, #{words}]
        stp x2, x3, [sp, #{words} + 16]
        stp x4, x5, [sp, #{words} + 32]
        stp x6, x7, [sp, #{words} + 48]
        str x16, [sp, #{index}]
        str x8, [sp, #{hidden}]
        add x9, x29, #16
        str x9, [sp, #{stack}]
        str xzr, [sp, #{open}]
        stp xzr, xzr, [sp, #{result}]
        stp q0, q1, [sp, #{floats}]
        stp q2, q3, [sp, #{floats} + 32]
        stp q4, q5, [sp, #{floats} + 64]
        stp q6, q7, [sp, #{floats} + 96]
        mov x0, sp"
    };
}

/// Restores the arguments.
#[cfg(target_arch = "aarch64")]
macro_rules! bring_back {
    () => {
        "ldp x0, x1, [sp, #{words}]
        ldp x2, x3, [sp, #{words} + 16]
        ldp x4, x5, [sp, #{words} + 32]
        ldp x6, x7, [sp, #{words} + 48]
        ldr x8, [sp, #{hidden}]
        ldp q0, q1, [sp, #{floats}]
        ldp q2, q3, [sp, #{floats} + 32]
        ldp q4, q5, [sp, #{floats} + 64]
        ldp q6, q7, [sp, #{floats} + 96]"
    };
}

/// Handles the first call of a function: selects its target and jumps there.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn first() {
    with_frame!(
        keep!(),
        "bl {choose}",
        "mov x17, x0",
        bring_back!(),
        "ldr x16, [sp, #{index}]",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa sp, 0",
        "br x17",
        ".cfi_endproc",
        choose = sym choose,
    )
}

/// Handles a recorded call: calls NVIDIA's function and returns here.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(super) extern "C" fn recorded() {
    with_frame!(
        keep!(),
        "bl {enter}",
        "mov x17, x0",
        bring_back!(),
        "sub sp, sp, #8 * {copied}",
        ".set .Lword, 0",
        ".rept {copied} / 2",
        "ldp x9, x10, [x29, #16 + .Lword]",
        "stp x9, x10, [sp, #.Lword]",
        ".set .Lword, .Lword + 16",
        ".endr",
        "blr x17",
        "add sp, sp, #8 * {copied}",
        "stp x0, x1, [sp, #{result}]",
        "str q0, [sp, #{floats}]",
        "mov x0, sp",
        "bl {leave}",
        "ldp x0, x1, [sp, #{result}]",
        "ldr q0, [sp, #{floats}]",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa sp, 0",
        "ret",
        ".cfi_endproc",
        enter = sym record::enter,
        leave = sym record::leave,
        copied = const STACK_WORDS,
    )
}

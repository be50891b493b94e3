//! Fibers: separate stacks for code that waits, and the switch between them.
//!
//! A *context* is a stack pointer. Everything else that must survive a switch lies on the stack it points to.
//! A switch saves the callee-saved registers and nothing more, so it costs about as much as a call. It ends
//! in a jump: a return would go elsewhere than the call came from, which processors mispredict each time (15
//! ns instead of 3.5). The floating-point environment is the same in all contexts of a thread and is not
//! switched.
//!
//! A fiber is abandoned by switching away and never back: generated code owns nothing that would have to be
//! released.

use crate::map::{Mapping, Pages};
use std::arch::naked_asm;
use std::ffi::c_void;
use std::io;

/// Switch target: the top of a stack with saved registers on it.
pub type Context = *mut u8;

/// First function of a fiber. It must not return: it ends by switching away.
pub type FiberEntry = unsafe extern "C" fn(*mut c_void) -> !;

#[derive(Debug)]
pub struct Stack {
    mapping: Mapping,
}

impl Stack {
    /// Creates a stack of `bytes` bytes, which take memory as they are used. Below its end is a guard.
    pub fn new(bytes: usize) -> io::Result<Stack> {
        Ok(Stack { mapping: Mapping::new(bytes, Pages::Stack)? })
    }

    /// Returns its length.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// Returns the address after its last byte, where the stack starts.
    pub fn top(&self) -> usize {
        self.mapping.start() as usize + self.mapping.bytes()
    }

    /// Returns whether an access to an address is a stack overflow.
    pub fn overflows_at(&self, address: usize) -> bool {
        self.mapping.in_guard(address)
    }

    /// Returns a context that runs `start(argument)` when it is first switched to.
    pub fn prepare(&self, start: FiberEntry, argument: *mut c_void) -> Context {
        let frame = initial_frame(start, argument);
        // SAFETY: a stack has at least a page, which is more than the frame; nothing else refers to it.
        unsafe {
            let at = (self.top() as *mut u64).sub(frame.len());
            at.copy_from_nonoverlapping(frame.as_ptr(), frame.len());
            at.cast()
        }
    }
}

/// Saves the current context in `*from` and continues at `to`. Returns when the saved context is switched to.
///
/// # Safety
///
/// `to` is a context that was prepared, or saved by a switch, and has not been switched to since; its stack
/// is alive. The code that runs in between may do anything to whatever is borrowed across the call.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch(from: *mut Context, to: Context) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "pop rcx",
        "jmp rcx",
    )
}

/// Continues at the context in the stack pointer: the second half of [`switch`], for signal handlers.
///
/// # Safety
///
/// Not to be called: a handler sets the stack pointer to a context and the instruction pointer here.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn land() {
    naked_asm!("cld", "pop r15", "pop r14", "pop r13", "pop r12", "pop rbx", "pop rbp", "ret")
}

/// Contains the first instructions of a fiber: the function is in `r13`, its argument in `r12`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    naked_asm!("xor ebp, ebp", "mov rdi, r12", "call r13", "ud2")
}

#[cfg(target_arch = "x86_64")]
fn initial_frame(start: FiberEntry, argument: *mut c_void) -> [u64; 9] {
    let begin = begin as unsafe extern "C" fn() as usize as u64;
    // r15, r14, r13, r12, rbx, rbp, the return address; two more words, so that the stack is aligned where
    // `begin` calls.
    [0, 0, start as usize as u64, argument as u64, 0, 0, begin, 0, 0]
}

/// Saves the current context in `*from` and continues at `to`. Returns when the saved context is switched to.
///
/// # Safety
///
/// `to` is a context that was prepared, or saved by a switch, and has not been switched to since; its stack
/// is alive. The code that runs in between may do anything to whatever is borrowed across the call.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch(from: *mut Context, to: Context) {
    naked_asm!(
        "sub sp, sp, #160",
        "stp x19, x20, [sp, #0]",
        "stp x21, x22, [sp, #16]",
        "stp x23, x24, [sp, #32]",
        "stp x25, x26, [sp, #48]",
        "stp x27, x28, [sp, #64]",
        "stp x29, x30, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mov x9, sp",
        "str x9, [x0]",
        "mov sp, x1",
        "b {land}",
        land = sym land,
    )
}

/// Continues at the context in the stack pointer: the second half of [`switch`], for signal handlers.
///
/// # Safety
///
/// Not to be called: a handler sets the stack pointer to a context and the instruction pointer here.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn land() {
    naked_asm!(
        "ldp x19, x20, [sp, #0]",
        "ldp x21, x22, [sp, #16]",
        "ldp x23, x24, [sp, #32]",
        "ldp x25, x26, [sp, #48]",
        "ldp x27, x28, [sp, #64]",
        "ldp x29, x30, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "add sp, sp, #160",
        "br x30",
    )
}

/// Contains the first instructions of a fiber: the function is in `x20`, its argument in `x19`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    naked_asm!("mov x29, xzr", "mov x0, x19", "blr x20", "brk #1")
}

#[cfg(target_arch = "aarch64")]
fn initial_frame(start: FiberEntry, argument: *mut c_void) -> [u64; 20] {
    let mut frame = [0; 20];
    frame[0] = argument as u64;
    frame[1] = start as usize as u64;
    // x30: return address of the landing.
    frame[11] = begin as unsafe extern "C" fn() as usize as u64;
    frame
}

/// Sets the floating-point environment of this thread: rounding to nearest, denormals kept, exceptions
/// masked.
pub(crate) fn default_floats() {
    #[cfg(target_arch = "x86_64")]
    {
        let control: u32 = 0x1f80;
        // SAFETY: the value is the one that a process starts with.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &control, options(nostack, readonly)) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the value is the one that a process starts with.
    unsafe {
        std::arch::asm!("msr fpcr, xzr", options(nostack, nomem))
    };
}

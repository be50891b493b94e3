//! Reads of memory that may not be mapped.
//!
//! One instruction does all reading, and the signal handler knows its address. If it faults, the function
//! returns an error.

use std::arch::global_asm;

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.broadloom_probe, \"ax\", @progbits",
    // Visible in this library only.
    ".globl broadloom_probe, broadloom_probe_load, broadloom_probe_failed",
    ".hidden broadloom_probe, broadloom_probe_load, broadloom_probe_failed",
    ".p2align 4",
    "broadloom_probe:",
    "xor eax, eax",
    "2:",
    "cmp rax, rdx",
    "jae 3f",
    "broadloom_probe_load:",
    "movzx r8d, byte ptr [rsi + rax]",
    "test ecx, ecx",
    "jz 4f",
    "test r8d, r8d",
    "jz 3f",
    "4:",
    "mov byte ptr [rdi + rax], r8b",
    "inc rax",
    "jmp 2b",
    "3:",
    "ret",
    "broadloom_probe_failed:",
    "mov rax, -1",
    "ret",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.broadloom_probe, \"ax\", @progbits",
    // Visible in this library only.
    ".globl broadloom_probe, broadloom_probe_load, broadloom_probe_failed",
    ".hidden broadloom_probe, broadloom_probe_load, broadloom_probe_failed",
    ".p2align 4",
    "broadloom_probe:",
    "mov x4, x0",
    "mov x0, xzr",
    "2:",
    "cmp x0, x2",
    "b.hs 3f",
    "broadloom_probe_load:",
    "ldrb w5, [x1, x0]",
    "cbz w3, 4f",
    "cbz w5, 3f",
    "4:",
    "strb w5, [x4, x0]",
    "add x0, x0, #1",
    "b 2b",
    "3:",
    "ret",
    "broadloom_probe_failed:",
    "mov x0, #-1",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    /// Copies bytes, up to a zero if requested. Returns their number, or -1 if a byte could not be read.
    fn broadloom_probe(to: *mut u8, from: *const u8, most: usize, until_zero: u32) -> isize;
    /// Marks the instruction that reads.
    fn broadloom_probe_load();
    /// Marks the address to continue at if the read faults.
    fn broadloom_probe_failed();
}

/// Returns the address at which a faulting thread continues, if `pc` is the reading instruction.
pub(crate) fn recovery(pc: usize) -> Option<usize> {
    let load = broadloom_probe_load as unsafe extern "C" fn() as usize;
    (pc == load).then_some(broadloom_probe_failed as unsafe extern "C" fn() as usize)
}

/// Copies bytes from an address of a kernel, up to the first zero if requested. Returns `None` if not all of
/// them are readable.
pub fn copy(address: u64, into: &mut [u8], until_zero: bool) -> Option<usize> {
    // SAFETY: it writes at most `into.len()` bytes to `into`. Reading may fault, at one known instruction,
    // from which the handler that workers install recovers. Memory that kernels write concurrently is read
    // byte by byte, and any value is acceptable.
    let count = unsafe { broadloom_probe(into.as_mut_ptr(), address as *const u8, into.len(), u32::from(until_zero)) };
    usize::try_from(count).ok()
}

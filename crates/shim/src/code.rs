//! Machine code of a shim library.
//!
//! The assembler makes it once, as constants of this program; [`elf`](crate::elf) copies it into each shim.
//! **It contains no absolute address and refers to nothing outside of itself.** Its head has the distances to
//! the parts of the file that [`elf`](crate::elf) lays out.
//!
//! An entry is two instructions: it loads the number of its function and jumps to the common code, which
//! jumps to the address in the function's slot. An empty slot is filled first: the replacement library is
//! opened, and the function is looked up by its name. **All registers that can hold arguments are kept, and
//! the stack is as the caller left it**, so functions of any type pass, with any number of arguments.
//!
//! There is no lock. Threads that call at the same time all open the library, which the loader does once, and
//! write the same addresses. A library that cannot be opened ends the process with exit code 3 and a message.
//!
//! When the loader has loaded the shim, it registers a function for the end of the loading thread, usually the
//! main thread. That function tells the replacement library that the process ends (`ENDING`).

use std::arch::global_asm;

/// Maximum number of functions of a library.
const MOST: usize = 2048;

/// Number of bytes of an entry.
const ENTRY: usize = 16;

/// Functions of the C library that the code calls, in the order of the table of imports.
pub(crate) const IMPORTS: [&str; 6] = ["dlopen", "dlsym", "dlerror", "writev", "_exit", "__cxa_thread_atexit_impl"];

/// Number of words before the slots of the functions: the imports, the handle of the replacement library, and
/// its function `ENDING`.
pub(crate) const WORDS: usize = IMPORTS.len() + 2;

/// Distances from the start of the code, and the length of the path. They are the first words of the code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeHeader {
    /// Imports, two words of the code's own, and one slot for each function.
    pub(crate) data: u64,
    /// Symbol of the first function in the table of symbols.
    pub(crate) symbols: u64,
    /// Texts that symbols refer to.
    pub(crate) texts: u64,
    /// Zero-terminated path of the replacement library.
    pub(crate) path: u64,
    /// Number of bytes of the path.
    pub(crate) length: u64,
}

/// Offset of a function in the code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CodeFunction {
    /// Initialisation, called by the loader.
    Loaded,
    /// Function that returns 999, `CUDA_ERROR_UNKNOWN`.
    Failing,
    /// Entry of a function by its number.
    Entry(usize),
}

unsafe extern "C" {
    #[link_name = "broadloom_shim_code"]
    static START: u8;
    #[link_name = "broadloom_shim_code_end"]
    static END: u8;
}

/// Returns the code as the assembler made it.
fn assembled() -> &'static [u8] {
    let (start, end) = (&raw const START, &raw const END);
    // SAFETY: both symbols are in one section of constants, `END` behind `START`, and all bytes between them
    // are initialised.
    unsafe { std::slice::from_raw_parts(start, end.addr() - start.addr()) }
}

/// Returns an offset that the assembler has put behind the head.
fn offset(index: usize) -> u64 {
    let at = size_of::<CodeHeader>() + 8 * index;
    assembled()[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

impl CodeFunction {
    /// Returns the distance of the function from the start of the code.
    pub(crate) fn offset(self) -> u64 {
        match self {
            CodeFunction::Loaded => offset(0),
            CodeFunction::Failing => offset(1),
            CodeFunction::Entry(index) => offset(2) + (ENTRY * index) as u64,
        }
    }
}

/// Returns the code with entries for a number of functions.
///
/// # Panics
///
/// If there are more than `MOST` functions. Their number is known when the program is built.
pub(crate) fn code(head: &CodeHeader, functions: usize) -> Vec<u8> {
    assert!(functions <= MOST, "a library has more functions than its code has entries");
    let end = CodeFunction::Entry(functions).offset() as usize;
    let words = [head.data, head.symbols, head.texts, head.path, head.length];
    let mut code: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    code.extend(&assembled()[code.len()..end]);
    code
}

/// Number of bytes of the code with entries for a number of functions.
pub(crate) fn length(functions: usize) -> usize {
    CodeFunction::Entry(functions).offset() as usize
}

// Offsets in the data: imports in their order, then the handle, the function `ENDING`, the slots.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .rodata.broadloom_shim_code, \"a\", @progbits",
    ".globl broadloom_shim_code, broadloom_shim_code_end",
    ".hidden broadloom_shim_code, broadloom_shim_code_end",
    ".balign 16",
    "broadloom_shim_code:",
    ".Lshim_head:",
    "    .quad 0, 0, 0, 0, 0", // data, symbols, texts, path, length
    "    .quad .Lshim_loaded - .Lshim_head, .Lshim_failing - .Lshim_head, .Lshim_entries - .Lshim_head",
    ".Lshim_ending_name: .asciz \"broadloom_exit_begins\"",
    ".Lshim_foreign: .asciz \"LLVMContextCreate\"",
    ".Lshim_foreign_class: .asciz \"_ZN4llvm2cl6Option11addArgumentEv\"",
    ".Lshim_before: .ascii \"broadloom: the CUDA library `\"",
    ".Lshim_between: .ascii \"` cannot be used: \"",
    ".Lshim_after: .ascii \"; `make build` makes it, BROADLOOM_CUDART names another one\\n\"",
    ".Lshim_texts_end:",
    // Jumps to function r11. Only r10 and r11 are free: they hold no arguments.
    ".balign 16",
    ".Lshim_call:",
    "    lea r10, [rip + .Lshim_head]",
    "    add r10, [r10]",
    "    mov r10, [r10 + 8*r11 + 64]",
    "    test r10, r10",
    "    jz .Lshim_first",
    "    jmp r10",
    // Fills the slot. rbx is the head, r12 the data.
    ".Lshim_first:",
    "    push rbp",
    "    mov rbp, rsp",
    "    sub rsp, 320",
    "    mov [rsp], rdi",
    "    mov [rsp + 8], rsi",
    "    mov [rsp + 16], rdx",
    "    mov [rsp + 24], rcx",
    "    mov [rsp + 32], r8",
    "    mov [rsp + 40], r9",
    "    mov [rsp + 48], rax", // number of vector registers with variadic arguments
    "    mov [rsp + 56], r11",
    "    mov [rsp + 64], rbx",
    "    mov [rsp + 72], r12",
    "    movups [rsp + 80], xmm0",
    "    movups [rsp + 96], xmm1",
    "    movups [rsp + 112], xmm2",
    "    movups [rsp + 128], xmm3",
    "    movups [rsp + 144], xmm4",
    "    movups [rsp + 160], xmm5",
    "    movups [rsp + 176], xmm6",
    "    movups [rsp + 192], xmm7",
    "    lea rbx, [rip + .Lshim_head]",
    "    mov r12, rbx",
    "    add r12, [rbx]",
    "    mov rax, [r12 + 48]",
    "    test rax, rax",
    "    jnz 2f",
    // dlsym(RTLD_DEFAULT, a name of LLVM) decides about RTLD_DEEPBIND (8): one of its functions for C, or one of
    // its classes, because a program may export some of either. dlerror() forgets the failure.
    "    xor edi, edi",
    "    lea rsi, [rip + .Lshim_foreign]",
    "    call [r12 + 8]",
    "    test rax, rax",
    "    jnz 7f",
    "    xor edi, edi",
    "    lea rsi, [rip + .Lshim_foreign_class]",
    "    call [r12 + 8]",
    "7:",
    "    mov [rsp + 208], rax",
    "    call [r12 + 16]",
    "    mov esi, 2", // RTLD_NOW
    "    cmp qword ptr [rsp + 208], 0",
    "    je 1f",
    "    or esi, 8",
    "1:",
    "    mov rdi, rbx",
    "    add rdi, [rbx + 24]",
    "    call [r12]",
    "    test rax, rax",
    "    jz 4f",
    "    mov [rsp + 208], rax",
    "    mov rdi, rax",
    "    lea rsi, [rip + .Lshim_ending_name]",
    "    call [r12 + 8]",
    "    mov [r12 + 56], rax",
    "    mov rax, [rsp + 208]",
    "    mov [r12 + 48], rax",
    // dlsym(handle, name of the symbol)
    "2:",
    "    mov rdi, rax",
    "    imul rcx, [rsp + 56], 24",
    "    add rcx, rbx",
    "    add rcx, [rbx + 8]",
    "    mov esi, [rcx]",
    "    add rsi, rbx",
    "    add rsi, [rbx + 16]",
    "    call [r12 + 8]",
    "    test rax, rax",
    "    jz 4f",
    "    mov r10, rax",
    "    mov r11, [rsp + 56]",
    "    mov [r12 + 8*r11 + 64], r10",
    "    mov rdi, [rsp]",
    "    mov rsi, [rsp + 8]",
    "    mov rdx, [rsp + 16]",
    "    mov rcx, [rsp + 24]",
    "    mov r8, [rsp + 32]",
    "    mov r9, [rsp + 40]",
    "    mov rax, [rsp + 48]",
    "    mov rbx, [rsp + 64]",
    "    mov r12, [rsp + 72]",
    "    movups xmm0, [rsp + 80]",
    "    movups xmm1, [rsp + 96]",
    "    movups xmm2, [rsp + 112]",
    "    movups xmm3, [rsp + 128]",
    "    movups xmm4, [rsp + 144]",
    "    movups xmm5, [rsp + 160]",
    "    movups xmm6, [rsp + 176]",
    "    movups xmm7, [rsp + 192]",
    "    leave",
    "    jmp r10",
    // writev(2, five pieces, 5); _exit(3)
    "4:",
    "    call [r12 + 16]",
    "    lea rcx, [rip + .Lshim_before]",
    "    mov [rsp + 216], rcx",
    "    lea rdx, [rip + .Lshim_between]",
    "    sub rdx, rcx",
    "    mov [rsp + 224], rdx",
    "    mov rcx, rbx",
    "    add rcx, [rbx + 24]",
    "    mov [rsp + 232], rcx",
    "    mov rcx, [rbx + 32]",
    "    mov [rsp + 240], rcx",
    "    lea rcx, [rip + .Lshim_between]",
    "    mov [rsp + 248], rcx",
    "    lea rdx, [rip + .Lshim_after]",
    "    sub rdx, rcx",
    "    mov [rsp + 256], rdx",
    "    mov [rsp + 264], rax",
    "    xor ecx, ecx",
    "    test rax, rax",
    "    jz 6f",
    "5:",
    "    cmp byte ptr [rax + rcx], 0",
    "    je 6f",
    "    inc rcx",
    "    jmp 5b",
    "6:",
    "    mov [rsp + 272], rcx",
    "    lea rcx, [rip + .Lshim_after]",
    "    mov [rsp + 280], rcx",
    "    lea rdx, [rip + .Lshim_texts_end]",
    "    sub rdx, rcx",
    "    mov [rsp + 288], rdx",
    "    mov edi, 2",
    "    lea rsi, [rsp + 216]",
    "    mov edx, 5",
    "    call [r12 + 24]",
    "    mov edi, 3",
    "    call [r12 + 32]",
    // Registers the function for the end of this thread: (function, argument, address in this library).
    ".Lshim_loaded:",
    "    sub rsp, 8",
    "    lea rdx, [rip + .Lshim_head]",
    "    mov rax, rdx",
    "    add rax, [rdx]",
    "    mov rax, [rax + 40]",
    "    lea rdi, [rip + .Lshim_ending]",
    "    xor esi, esi",
    "    test rax, rax",
    "    jz 7f",
    "    call rax",
    "7:",
    "    add rsp, 8",
    "    ret",
    ".Lshim_ending:",
    "    lea rax, [rip + .Lshim_head]",
    "    add rax, [rax]",
    "    mov rax, [rax + 56]",
    "    test rax, rax",
    "    jz 8f",
    "    jmp rax",
    "8:",
    "    ret",
    ".Lshim_failing:",
    "    mov eax, 999",
    "    ret",
    ".balign 16",
    ".Lshim_entries:",
    ".set .Lshim_index, 0",
    ".rept {most}",
    "    .balign 16",
    "    mov r11d, .Lshim_index",
    "    jmp .Lshim_call",
    "    .set .Lshim_index, .Lshim_index + 1",
    ".endr",
    ".balign 16",
    "broadloom_shim_code_end:",
    ".popsection",
    most = const MOST,
);

// As above. x16, x17 and x9 to x15 hold no arguments.
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .rodata.broadloom_shim_code, \"a\", @progbits",
    ".globl broadloom_shim_code, broadloom_shim_code_end",
    ".hidden broadloom_shim_code, broadloom_shim_code_end",
    ".balign 16",
    "broadloom_shim_code:",
    ".Lshim_head:",
    "    .quad 0, 0, 0, 0, 0",
    "    .quad .Lshim_loaded - .Lshim_head, .Lshim_failing - .Lshim_head, .Lshim_entries - .Lshim_head",
    ".Lshim_ending_name: .asciz \"broadloom_exit_begins\"",
    ".Lshim_foreign: .asciz \"LLVMContextCreate\"",
    ".Lshim_foreign_class: .asciz \"_ZN4llvm2cl6Option11addArgumentEv\"",
    ".Lshim_before: .ascii \"broadloom: the CUDA library `\"",
    ".Lshim_between: .ascii \"` cannot be used: \"",
    ".Lshim_after: .ascii \"; `make build` makes it, BROADLOOM_CUDART names another one\\n\"",
    ".Lshim_texts_end:",
    ".balign 16",
    ".Lshim_call:",
    "    adr x17, .Lshim_head",
    "    ldr x9, [x17]",
    "    add x9, x9, x17",
    "    add x9, x9, x16, lsl #3",
    "    add x9, x9, #64",
    // The library was initialised before its address was written.
    "    ldar x17, [x9]",
    "    cbz x17, .Lshim_first",
    "    br x17",
    // Fills the slot. x19 is the head, x20 the data.
    ".Lshim_first:",
    "    stp x29, x30, [sp, #-16]!",
    "    mov x29, sp",
    "    sub sp, sp, #336",
    "    stp x0, x1, [sp]",
    "    stp x2, x3, [sp, #16]",
    "    stp x4, x5, [sp, #32]",
    "    stp x6, x7, [sp, #48]",
    "    stp x8, x16, [sp, #64]", // place of a large result; number of the function
    "    stp x19, x20, [sp, #80]",
    "    stp q0, q1, [sp, #96]",
    "    stp q2, q3, [sp, #128]",
    "    stp q4, q5, [sp, #160]",
    "    stp q6, q7, [sp, #192]",
    "    adr x19, .Lshim_head",
    "    ldr x20, [x19]",
    "    add x20, x20, x19",
    "    ldr x0, [x20, #48]",
    "    cbnz x0, 2f",
    "    adr x1, .Lshim_foreign",
    "    ldr x9, [x20, #8]",
    "    blr x9",
    "    cbnz x0, 7f",
    "    adr x1, .Lshim_foreign_class",
    "    ldr x9, [x20, #8]",
    "    blr x9",
    "7:",
    "    str x0, [sp, #224]",
    "    ldr x9, [x20, #16]",
    "    blr x9",
    "    mov w1, #2",
    "    ldr x9, [sp, #224]",
    "    cbz x9, 1f",
    "    mov w1, #10",
    "1:",
    "    ldr x0, [x19, #24]",
    "    add x0, x0, x19",
    "    ldr x9, [x20]",
    "    blr x9",
    "    cbz x0, 4f",
    "    str x0, [sp, #224]",
    "    adr x1, .Lshim_ending_name",
    "    ldr x9, [x20, #8]",
    "    blr x9",
    "    str x0, [x20, #56]",
    "    ldr x0, [sp, #224]",
    "    str x0, [x20, #48]",
    "2:",
    "    ldr x9, [sp, #72]",
    "    add x9, x9, x9, lsl #1",
    "    lsl x9, x9, #3",
    "    ldr x10, [x19, #8]",
    "    add x10, x10, x19",
    "    ldr w1, [x10, x9]",
    "    ldr x10, [x19, #16]",
    "    add x1, x1, x10",
    "    add x1, x1, x19",
    "    ldr x9, [x20, #8]",
    "    blr x9",
    "    cbz x0, 4f",
    "    mov x17, x0",
    "    ldp x8, x16, [sp, #64]",
    "    add x9, x20, x16, lsl #3",
    "    add x9, x9, #64",
    "    stlr x17, [x9]",
    "    ldp x0, x1, [sp]",
    "    ldp x2, x3, [sp, #16]",
    "    ldp x4, x5, [sp, #32]",
    "    ldp x6, x7, [sp, #48]",
    "    ldp x19, x20, [sp, #80]",
    "    ldp q0, q1, [sp, #96]",
    "    ldp q2, q3, [sp, #128]",
    "    ldp q4, q5, [sp, #160]",
    "    ldp q6, q7, [sp, #192]",
    "    mov sp, x29",
    "    ldp x29, x30, [sp], #16",
    "    br x17",
    "4:",
    "    ldr x9, [x20, #16]",
    "    blr x9",
    "    adr x9, .Lshim_before",
    "    mov x10, #(.Lshim_between - .Lshim_before)",
    "    stp x9, x10, [sp, #232]",
    "    ldr x9, [x19, #24]",
    "    add x9, x9, x19",
    "    ldr x10, [x19, #32]",
    "    stp x9, x10, [sp, #248]",
    "    adr x9, .Lshim_between",
    "    mov x10, #(.Lshim_after - .Lshim_between)",
    "    stp x9, x10, [sp, #264]",
    "    mov x10, #0",
    "    cbz x0, 6f",
    "5:",
    "    ldrb w11, [x0, x10]",
    "    cbz w11, 6f",
    "    add x10, x10, #1",
    "    b 5b",
    "6:",
    "    stp x0, x10, [sp, #280]",
    "    adr x9, .Lshim_after",
    "    mov x10, #(.Lshim_texts_end - .Lshim_after)",
    "    stp x9, x10, [sp, #296]",
    "    mov w0, #2",
    "    add x1, sp, #232",
    "    mov w2, #5",
    "    ldr x9, [x20, #24]",
    "    blr x9",
    "    mov w0, #3",
    "    ldr x9, [x20, #32]",
    "    blr x9",
    ".Lshim_loaded:",
    "    adr x2, .Lshim_head",
    "    ldr x9, [x2]",
    "    add x9, x9, x2",
    "    ldr x9, [x9, #40]",
    "    adr x0, .Lshim_ending",
    "    mov x1, #0",
    "    cbz x9, 7f",
    "    br x9",
    "7:",
    "    ret",
    ".Lshim_ending:",
    "    adr x9, .Lshim_head",
    "    ldr x10, [x9]",
    "    add x9, x9, x10",
    "    ldr x9, [x9, #56]",
    "    cbz x9, 8f",
    "    br x9",
    "8:",
    "    ret",
    ".Lshim_failing:",
    "    mov w0, #999",
    "    ret",
    ".balign 16",
    ".Lshim_entries:",
    ".set .Lshim_index, 0",
    ".rept {most}",
    "    .balign 16",
    "    mov w16, #.Lshim_index",
    "    b .Lshim_call",
    "    .set .Lshim_index, .Lshim_index + 1",
    ".endr",
    ".balign 16",
    "broadloom_shim_code_end:",
    ".popsection",
    most = const MOST,
);

//! Objects that load, and thousands of broken variants that do not.

use crate::testing::{object, object_for};
use broadloom_cpu::object::elf::Elf;
use broadloom_cpu::object::{Object, ObjectError, ObjectLayout, ObjectMachine, STUB_BYTES};
use inkwell::targets::RelocMode;

/// Function that uses constants, variables, calls, jump tables and functions of the table.
const RICH: &str = r#"
@numbers = private constant [4 x i64] [i64 11, i64 22, i64 33, i64 44]
@counter = internal global i64 5
@zeros = internal global [100 x i64] zeroinitializer
@pointers = private constant [2 x ptr] [ptr @numbers, ptr @counter]
declare ptr @memset(ptr, i32, i64)
declare double @fmod(double, double)
define internal i64 @pick(i64 %i) noinline {
  switch i64 %i, label %other [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e ]
a:
  ret i64 7
b:
  ret i64 100
c:
  ret i64 31
d:
  ret i64 -4
e:
  ret i64 9000
other:
  ret i64 1
}
define void @kernel(ptr %out) {
  %i = load volatile i64, ptr %out
  %p = getelementptr [4 x i64], ptr @numbers, i64 0, i64 %i
  %n = load i64, ptr %p
  %c = load i64, ptr @counter
  %c2 = add i64 %c, 1
  store i64 %c2, ptr @counter
  %k = call i64 @pick(i64 %i)
  %s1 = add i64 %n, %c
  %s2 = add i64 %s1, %k
  %zp = getelementptr [100 x i64], ptr @zeros, i64 0, i64 %i
  %z = load i64, ptr %zp
  %s3 = add i64 %s2, %z
  %pp = getelementptr [2 x ptr], ptr @pointers, i64 0, i64 1
  %ip = load volatile ptr, ptr %pp
  %iv = load i64, ptr %ip
  %s4 = add i64 %s3, %iv
  store i64 %s4, ptr %out
  %q = getelementptr i64, ptr %out, i64 1
  %m = call ptr @memset(ptr %q, i32 255, i64 %i)
  %x = sitofp i64 %s4 to double
  %f = call double @fmod(double %x, double 10.0)
  %r = getelementptr i64, ptr %out, i64 2
  store double %f, ptr %r
  ret void
}
"#;

fn call(object: &Object, argument: u64) -> (u64, u64, f64) {
    let mut out = [argument, 0, 0];
    // SAFETY: the kernels of these tests take a pointer to three words.
    unsafe { object.entry()(out.as_mut_ptr().cast()) };
    (out[0], out[1], f64::from_bits(out[2]))
}

#[test]
fn code_constants_variables_and_calls_find_each_other() {
    let bytes = object(RICH);
    let object = Object::load(&bytes).unwrap();
    // 33 + 5 + 31 + 0 + 6
    assert_eq!(call(&object, 2), (75, 0xffff, 5.0));
    // 22 + 6 + 100 + 7: the variable has grown.
    assert_eq!(call(&object, 1), (135, 0xff, 5.0));
    // Another load starts afresh.
    assert_eq!(call(&Object::load(&bytes).unwrap(), 1).0, 133);
    assert!(object.bytes() < 100_000);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn static_code_loads_where_its_addresses_reach() {
    let bytes = object_for(RICH, "x86_64-unknown-linux-gnu", "", RelocMode::Static);
    assert_eq!(call(&Object::load(&bytes).unwrap(), 2), (75, 0xffff, 5.0));
}

#[test]
fn halves_are_converted_by_the_table() {
    let text = r#"
define void @kernel(ptr %out) {
  %bits = load i64, ptr %out
  %x = bitcast i64 %bits to double
  %h = fptrunc double %x to half
  %w = fpext half %h to double
  store double %w, ptr %out
  ret void
}
"#;
    let object = Object::load(&object_for(text, "x86_64-unknown-linux-gnu", "", RelocMode::PIC)).unwrap();
    let mut out = [std::f64::consts::PI.to_bits(), 0, 0];
    // SAFETY: the kernel takes a pointer to a word.
    unsafe { object.entry()(out.as_mut_ptr().cast()) };
    assert_eq!(f64::from_bits(out[0]), 3.140625);
}

#[test]
fn what_nothing_defines_is_named() {
    let bytes = object("declare void @system()\ndefine void @kernel(ptr %p) { call void @system() ret void }");
    assert_eq!(Object::load(&bytes).unwrap_err(), ObjectError::Undefined("system".into()));
    let bytes = object("define void @other(ptr %p) { ret void }");
    assert_eq!(Object::load(&bytes).unwrap_err(), ObjectError::Undefined("kernel".into()));
}

#[test]
fn objects_of_another_machine_are_linked_and_not_loaded() {
    let bytes = object_for(RICH, "aarch64-unknown-linux-gnu", "", RelocMode::PIC);
    let elf = Elf::parse(&bytes).unwrap();
    assert_eq!(elf.machine, ObjectMachine::Aarch64);
    let plan = ObjectLayout::new(&elf, 4096).unwrap();
    let far = |_: &str| Some(0x7f12_3456_7890usize);
    let base = 0x5555_0000_0000u64;
    let image = plan.image(&elf, base, &far).unwrap();
    // Calls of far functions use a stub that loads the address and jumps.
    let stub = elf.symbols.iter().position(|symbol| symbol.name == "memset").unwrap() as u64;
    let at = (plan.stubs + STUB_BYTES * stub) as usize;
    assert_eq!(image[at..at + 8], [0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6]);
    assert_eq!(image[at + 8..at + 16], 0x7f12_3456_7890u64.to_le_bytes());
    let calls = |image: &[u8], target: u64| {
        let words = image[..plan.stubs as usize].chunks_exact(4).enumerate();
        words
            .filter(|(index, word)| {
                let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                let distance = i64::from((word << 6) as i32 >> 4);
                word >> 26 == 0b10_0101 && (4 * *index as i64 + distance) as u64 == target
            })
            .count()
    };
    assert_eq!(calls(&image, plan.stubs + STUB_BYTES * stub), 1, "one call of memset");
    if cfg!(target_arch = "x86_64") {
        assert_eq!(Object::load(&bytes).unwrap_err(), ObjectError::OtherMachine(183));
    }
}

#[test]
fn a_broken_object_is_an_error_or_another_object() {
    for triple in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
        let whole = object_for(RICH, triple, "", RelocMode::PIC);
        let link = |bytes: &[u8]| {
            let elf = Elf::parse(bytes)?;
            let plan = ObjectLayout::new(&elf, 4096)?;
            plan.entry(&elf)?;
            plan.image(&elf, 0x5555_0000_0000, &broadloom_cpu::externs::address).map(drop)
        };
        assert_eq!(link(&whole), Ok(()));
        for length in 0..whole.len() {
            assert!(link(&whole[..length]).is_err(), "cut to {length} bytes");
        }
        for at in 0..whole.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                let _ = link(&bytes);
            }
        }
    }
}

/// Thousands of sections that share one relocation table would become gigabytes.
#[test]
fn tables_that_overlap_are_refused() {
    let whole = object(RICH);
    let u64_at = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (table, count) = (u64_at(&whole, 40), usize::from(u16::from_le_bytes([whole[60], whole[61]])));
    let headers = &whole[table..table + 64 * count];
    let is_used = |header: &&[u8]| {
        let target = usize::from(header[44]);
        header[4] == 4 && headers[64 * target + 8] & 2 != 0 && u64_at(header, 32) > 24
    };
    let relocations = headers.chunks_exact(64).find(is_used).unwrap();
    let copies = 60_000;
    let mut bytes = [&whole[..], headers, &relocations.repeat(copies)].concat();
    bytes[40..48].copy_from_slice(&(whole.len() as u64).to_le_bytes());
    bytes[60..62].copy_from_slice(&((count + copies) as u16).to_le_bytes());
    assert_eq!(Elf::parse(&bytes).unwrap_err(), ObjectError::Malformed("its relocations"));
}

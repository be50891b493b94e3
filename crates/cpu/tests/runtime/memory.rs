//! Memory of the device.

use broadloom_cpu::memory::{AddressSurroundings, Memory, Owner};
use broadloom_device::Error;
use std::cell::Cell;

fn release(memory: &Memory, address: u64) {
    let freed = memory.free(address).unwrap();
    memory.release_after(freed, None);
}

#[test]
fn allocations_are_aligned_apart_and_usable() {
    let memory = Memory::new(1 << 30, 0, 0);
    let mut taken: Vec<(u64, u64)> = vec![];
    for bytes in [0, 1, 255, 256, 257, 5000, 65_536, 65_537, 1 << 20, 5 << 20, 100] {
        let start = memory.allocate(bytes, Owner::Buffer).unwrap();
        assert_eq!(start % 256, 0);
        for (other, length) in &taken {
            assert!(start + bytes <= *other || other + length <= start, "{bytes} bytes at {start:#x} meet another");
            assert_ne!(start, *other);
        }
        // SAFETY: the allocation has `bytes` bytes.
        unsafe { std::ptr::write_bytes(start as *mut u8, 7, bytes as usize) };
        taken.push((start, bytes));
    }
    for (start, bytes) in taken {
        assert!(memory.range("test", start, bytes).is_ok());
        assert!(memory.range("test", start, bytes + 1).is_err());
        assert!(memory.range("test", start + bytes / 2, bytes / 2).is_ok());
        release(&memory, start);
        assert!(memory.range("test", start, bytes.max(1)).is_err());
        assert!(memory.free(start).is_err(), "freed twice");
    }
    assert_eq!(memory.usage().used, 0);
}

#[test]
fn the_limit_is_kept_and_everything_stays_usable() {
    let memory = Memory::new(10 << 20, 0, 0);
    let first = memory.allocate(6 << 20, Owner::Buffer).unwrap();
    let refused = memory.allocate(6 << 20, Owner::Buffer).unwrap_err();
    assert!(matches!(refused, Error::OutOfMemory { requested: 0x60_0000, available: 0x40_0000 }), "{refused:?}");
    assert!(memory.allocate(u64::MAX, Owner::Buffer).is_err());
    let second = memory.allocate(4 << 20, Owner::Buffer).unwrap();
    assert!(memory.allocate(1, Owner::Buffer).is_err());
    release(&memory, first);
    // The pool is emptied for a size that it does not have.
    let third = memory.allocate(5 << 20, Owner::Buffer).unwrap();
    release(&memory, second);
    release(&memory, third);
    assert!(memory.allocate(10 << 20, Owner::Buffer).is_ok());
}

#[test]
fn freed_mappings_are_used_again() {
    let memory = Memory::new(1 << 30, 0, 0);
    let first = memory.allocate(3 << 20, Owner::Buffer).unwrap();
    release(&memory, first);
    assert_eq!(memory.allocate((3 << 20) - 100, Owner::Buffer).unwrap(), first);
    let small = memory.allocate(300, Owner::Buffer).unwrap();
    release(&memory, small);
    assert_eq!(memory.allocate(400, Owner::Buffer).unwrap(), small);
}

#[test]
fn an_allocation_finds_memory_that_is_released_behind_its_first_try() {
    let memory = Memory::new(1 << 20, 0, 0);
    let (address, tries) = (memory.allocate(1 << 20, Owner::Buffer).unwrap(), Cell::new(0));
    let allocate = || {
        let outcome = memory.allocate(1 << 20, Owner::Buffer);
        // As a worker does that ends the work which this memory waits for.
        if tries.replace(tries.get() + 1) == 0 {
            release(&memory, address);
        }
        outcome
    };
    memory.retried(allocate, || panic!("nothing waits")).unwrap();
    assert_eq!(tries.get(), 2);
    let refused = memory.retried(|| memory.allocate(1, Owner::Buffer), || panic!("nothing waits"));
    assert!(matches!(refused, Err(Error::OutOfMemory { requested: 1, .. })), "{refused:?}");
}

#[test]
fn freed_memory_waits_for_work() {
    let memory = Memory::new(1 << 30, 0, 0);
    let address = memory.allocate(1000, Owner::Buffer).unwrap();
    let freed = memory.free(address).unwrap();
    memory.release_after(freed, Some(7));
    assert_ne!(memory.allocate(1000, Owner::Buffer).unwrap(), address);
    memory.reap(6);
    assert!(memory.has_dying());
    memory.reap(7);
    assert!(!memory.has_dying());
    assert_eq!(memory.allocate(1000, Owner::Buffer).unwrap(), address);
}

#[test]
fn the_heap_of_kernels_has_a_limit_and_a_memory() {
    let memory = Memory::new(1 << 30, 1000, 0);
    let first = memory.heap_allocate(600);
    assert_ne!(first, 0);
    assert_eq!(memory.heap_allocate(600), 0);
    assert_eq!(
        memory.heap_free(first + 8).unwrap_err().to_string(),
        format!("{:#x} is inside of memory from malloc of 600 bytes at {first:#x}", first + 8)
    );
    assert_eq!(memory.heap_free(0), Ok(()));
    assert_eq!(memory.heap_free(first), Ok(()));
    assert_eq!(memory.heap_free(first).unwrap_err().to_string(), format!("{first:#x} was freed before"));
    let buffer = memory.allocate(100, Owner::Buffer).unwrap();
    assert_eq!(memory.heap_free(buffer).unwrap_err().to_string(), format!("{buffer:#x} did not come from malloc"));
    assert!(memory.free(memory.heap_allocate(600)).is_err(), "the host frees nothing of a kernel's");
}

#[test]
fn a_stray_address_is_described() {
    let memory = Memory::new(1 << 30, 0, 0);
    let buffer = memory.allocate(1 << 20, Owner::Buffer).unwrap();
    let end = buffer + (1 << 20);
    let behind = format!("{end:#x} is right behind the end of a buffer of 1048576 bytes at {buffer:#x}");
    assert_eq!(memory.near(end), AddressSurroundings::Outside(behind));
    assert_eq!(memory.near(16), AddressSurroundings::Outside("0x10 is near the null pointer".into()));
    release(&memory, buffer);
    let dead = format!("{:#x} is in a buffer of 1048576 bytes at {buffer:#x}, freed before", buffer + 4);
    assert_eq!(memory.near(buffer + 4), AddressSurroundings::Freed(dead));
}

//! Functions that generated code calls without the runtime.

use broadloom_cpu::externs::address;

/// Returns a function of the table that converts a float. A half is in the low bits of its register.
fn converts(name: &str) -> extern "C" fn(f32) -> f32 {
    // SAFETY: the functions with these names have this signature.
    unsafe { std::mem::transmute::<usize, extern "C" fn(f32) -> f32>(address(name).unwrap()) }
}

fn low_half(register: f32) -> u16 {
    register.to_bits() as u16
}

fn in_register(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits))
}

/// Finds the nearest number of a format by trying all of them.
fn nearest(value: f64, all: &[(f64, u16)]) -> u16 {
    let mut best = all[0];
    for &(candidate, bits) in all {
        let (now, then) = ((candidate - value).abs(), (best.0 - value).abs());
        if now < then || (now == then && bits & 1 == 0) {
            best = (candidate, bits);
        }
    }
    best.1
}

#[test]
fn halves_round_to_the_nearest_even() {
    // SAFETY: the function with this name has this signature.
    let narrow = unsafe { std::mem::transmute::<usize, extern "C" fn(f64) -> f32>(address("__truncdfhf2").unwrap()) };
    let narrow = |value: f64| low_half(narrow(value));
    let extend = converts("__extendhfsf2");
    let all: Vec<(f64, u16)> = (0..0x7c00u16).map(|bits| (f64::from(extend(in_register(bits))), bits)).collect();
    for window in all.windows(2).step_by(7) {
        let (low, high) = (window[0].0, window[1].0);
        for part in [0.0, 0.25, 0.5, 0.75] {
            let value = low + (high - low) * part;
            let near: Vec<_> = window.to_vec();
            assert_eq!(narrow(value), nearest(value, &near), "{value}");
            assert_eq!(narrow(-value), nearest(value, &near) | 0x8000, "-{value}");
        }
        let above_middle = low + (high - low) * 0.5;
        let above_middle = f64::from_bits(above_middle.to_bits() + 1);
        assert_eq!(narrow(above_middle), window[1].1, "rounded once: {above_middle}");
    }
    assert_eq!(narrow(65519.9), 0x7bff);
    assert_eq!(narrow(65520.0), 0x7c00);
    assert_eq!(narrow(f64::INFINITY), 0x7c00);
    assert_eq!(narrow(f64::NAN) & 0x7e00, 0x7e00);
    assert_eq!(narrow(f64::MIN_POSITIVE), 0);
}

#[test]
fn halves_survive_both_ways() {
    let (extend_half, truncate_to_half) = (converts("__extendhfsf2"), converts("__truncsfhf2"));
    let (extend_brain, truncate_to_brain) = (converts("__extendbfsf2"), converts("__truncsfbf2"));
    for bits in 0..=u16::MAX {
        let wide = extend_half(in_register(bits));
        if wide.is_nan() {
            assert!(bits & 0x7fff > 0x7c00);
        } else {
            assert_eq!(low_half(truncate_to_half(wide)), bits);
        }
        let brain = extend_brain(in_register(bits));
        if !brain.is_nan() {
            assert_eq!(low_half(truncate_to_brain(brain)), bits);
        }
    }
}

#[test]
fn only_known_functions_have_an_address() {
    for name in ["memcpy", "__truncdfhf2", "__udivti3", "fmodf", "floor"] {
        assert!(address(name).is_some(), "{name}");
    }
    for name in ["system", "malloc", "", "kernel"] {
        assert!(address(name).is_none(), "{name}");
    }
}

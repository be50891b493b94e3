//! Variables of modules: their values, and their memory.

use crate::testing::{device, module};
use broadloom_cpu::abi::function_address;
use broadloom_device::{Backend, Device, Error, Stream};

const HEAD: &str = ".version 8.0 .target sm_80 .address_size 64 ";

#[test]
fn variables_hold_what_the_text_says() {
    let text = "
        .global .align 4 .u32 one = 7;
        .const .align 4 .f32 half = 0f3F000000;
        .global .align 2 .u16 table[2][3] = {{1, 2, 3}, {4}};
        .global .align 8 .u64 pointer = generic(table) + 4;
        .visible .func f() { ret; }
        .visible .func g() { ret; }
        .global .align 8 .u64 code[2] = {f, g};
        .global .align 1 .b8 nothing[100];";
    let module = module(&format!("{HEAD}{text}"));
    let cpu = device(1);
    let loaded = Device::new(cpu.clone()).load(&module).unwrap();
    let bytes = |name: &str| {
        let found = loaded.variable(name).unwrap();
        let mut bytes = vec![9; found.bytes as usize];
        cpu.read(Stream(0), found.address, &mut bytes).unwrap();
        bytes
    };
    assert_eq!(bytes("one"), [7, 0, 0, 0]);
    assert_eq!(bytes("half"), 0.5f32.to_le_bytes());
    assert_eq!(bytes("table"), [1, 0, 2, 0, 3, 0, 4, 0, 0, 0, 0, 0]);
    let table = loaded.variable("table").unwrap().address;
    assert_eq!(bytes("pointer"), (table + 4).to_le_bytes());
    let functions = ["f", "g"].map(|name| function_address(module.function(name).unwrap()).to_le_bytes());
    assert_eq!(bytes("code"), functions.concat());
    assert_eq!(bytes("nothing"), [0; 100]);
    assert_eq!(loaded.variable("absent"), None);
    drop(loaded);
    assert!(cpu.read(Stream(0), table, &mut [0]).is_err(), "unloaded");
    assert_eq!(cpu.memory().used, 0);
}

#[test]
fn what_is_defined_elsewhere_is_refused_and_takes_nothing() {
    let cpu = device(1);
    let text = format!("{HEAD}.global .u32 mine; .extern .global .u32 theirs;");
    let error = Device::new(cpu.clone()).load(&module(&text)).unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
    assert_eq!(cpu.memory().used, 0);
}

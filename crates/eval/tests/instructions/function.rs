//! Instructions that are functions of their inputs.

use broadloom_eval::Operation;
use broadloom_ptx::{Class, Row};

#[test]
fn what_computes_has_a_function_and_nothing_else() {
    for row in Row::all() {
        let has_function = Operation::from_opcode(row.opcode).function().is_some();
        assert_eq!(has_function, row.is_function, "{}", row.name);
        assert!(!has_function || row.effects.is_pure() || row.class == Class::Carry, "{}", row.name);
    }
}

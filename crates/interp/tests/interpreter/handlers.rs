//! Instructions that the interpreter runs.

use broadloom_eval::Operation;
use broadloom_interp::handlers::is_run;
use broadloom_ptx::Row;

#[test]
fn every_general_instruction_is_run_and_no_other() {
    for row in Row::all() {
        let operation = Operation::from_text(row.name).unwrap();
        assert_eq!(is_run(&operation), row.is_general(), "{}", row.name);
    }
}

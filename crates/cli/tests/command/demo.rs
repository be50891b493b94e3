//! The demonstration of `make demo`, at small sizes: all its answers agree with its plain loops.

use std::path::Path;
use std::process::Command;

#[test]
fn every_job_of_the_demonstration_has_the_answer_of_its_plain_loop() {
    // `make test` builds all targets before it runs any.
    let demo = Path::new(env!("CARGO_BIN_EXE_broadloom")).with_file_name("examples").join("demo");
    assert!(demo.is_file(), "{} is not built: `cargo build --workspace --all-targets` builds it", demo.display());
    let output = Command::new(demo).arg("--quick").output().unwrap();
    let (printed, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}{complaint}");
    let (_, table) = printed.split_once("Summary").unwrap();
    for answer in ["60×40, error", "152×86,", "2000 numbers, from", "E E …", "512 stars, 2 steps", "race at examples/race.cu:12"]
    {
        assert!(table.contains(answer), "no `{answer}` in\n{table}");
    }
}

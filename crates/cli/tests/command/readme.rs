//! Tests that the README shows real calls with their real output.
//!
//! In a block that starts with three backticks and `console`, a line `$ broadloom …` is run from the root of
//! the repository. The text up to the next such line must be the output on the terminal. `BLESS=1` rewrites
//! it.

use crate::harness::{root, shell};

/// Returns the README with the actual output of every call.
fn with_real_output(text: &str) -> String {
    let mut written = String::new();
    let mut in_console = false;
    let mut in_output = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
            in_output = false;
        } else if in_console && line.starts_with("$ ") {
            in_output = true;
            written.push_str(line);
            written.push('\n');
            let outcome = shell(&line[2..]);
            assert!(!outcome.out.contains("panicked"), "{line}\n{}", outcome.out);
            written.push_str(&outcome.out);
            continue;
        }
        if !in_output {
            written.push_str(line);
            written.push('\n');
        }
    }
    written
}

#[test]
fn the_readme_shows_what_the_command_does() {
    let path = root().join("README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let real = with_real_output(&text);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, real).unwrap();
        return;
    }
    let difference = text.lines().zip(real.lines()).enumerate().find(|(_, (shown, real))| shown != real);
    if let Some((index, (shown, real))) = difference {
        panic!("README.md:{} shows\n  {shown}\nbut the command says\n  {real}\nBLESS=1 rewrites it.", index + 1);
    }
    assert_eq!(text, real, "README.md: BLESS=1 rewrites it");
}

#[test]
fn the_readme_has_calls() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(text.lines().filter(|line| line.starts_with("$ broadloom ")).count() >= 1);
}

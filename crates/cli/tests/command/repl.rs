//! Tests of NESL sessions: scripts on standard input, and an interactive session at a terminal.

use crate::harness::{broadloom_with_input, empty_folder, root};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

fn script(input: &str) -> crate::harness::Outcome {
    broadloom_with_input(&["repl"], input.as_bytes())
}

#[test]
fn a_script_is_answered_form_by_form() {
    let outcome =
        script("x = 41;\nlet a = 5;\n    b = 6\nin a * b + x;\n% a comment %\n{y in [1, 2, 3]\n | y > 1}; #\"ab\";").exits(0);
    assert_eq!(outcome.out, "x = 41 : int\nit = 71 : int\nit = [2, 3] : [int]\nit = 2 : int\n");
    assert_eq!(outcome.err, "");
}

#[test]
fn a_script_goes_on_behind_an_error_and_ends_at_exit() {
    let outcome =
        script("foo(3);\nx = 2;\nx[1];\nx + 1;\nexit;\nx + 2;\n").exits(1).complains(&["`foo` is not defined", "input:1:"]);
    assert_eq!(outcome.out, "x = 2 : int\nit = 3 : int\n");
}

/// Line numbers of messages count from the start of the script, for every form.
#[test]
fn lines_of_errors_count_from_the_start_of_a_script() {
    let outcome =
        script("x = 2;\n\ny = [1,\n  2];\nx[1]; % one %\nlet a = 5\nin a[0];\nhelp sum\n{y[i] :\n i in [5]};\n").exits(1);
    for place in ["input:5:", "input:7:", "input:9:"] {
        assert!(outcome.err.contains(place), "{place}: {}", outcome.err);
    }
    assert!(outcome.err.contains("5 | x[1];"), "{}", outcome.err);
}

#[test]
fn commands_need_no_semicolon() {
    let outcome = script("help sum\napropos plus_\nshow status\nset print_length 2\n[0:5];\nhelp\nexit\n1;\n").exits(0);
    let parts =
        ["TYPE: [a] -> a :: (a in number)", "The sum of all elements", "plus_scan :", "it = [0, 1,...] : [int]", "Commands:"];
    for part in parts {
        assert!(outcome.out.contains(part), "{part}: {}", outcome.out);
    }
    assert!(!outcome.out.contains("it = 1 "), "{}", outcome.out);
}

/// `let` opens nothing behind a command.
#[test]
fn words_of_the_language_are_described() {
    let outcome = script("help let\n1 + 1;\ndescribe if;\n2 + 2;\napropos (\n3 + 3;\nhelp and\n").exits(0);
    let parts = ["`let` is a word of the language: let <pattern>", "it = 2 : int", "then <expression>", "it = 4 : int"];
    for part in parts.into_iter().chain(["no name contains `(`", "it = 6 : int", "INTERFACE: "]) {
        assert!(outcome.out.contains(part), "{part}: {}", outcome.out);
    }
    script("help let us\n").exits(1).complains(&["`help` takes the name of a function"]);
}

#[test]
fn a_program_reads_the_next_lines_of_a_script() {
    let outcome = script("let ((line, end), status) = read_line(stdin) in line;\nhello there\n1 + 1;\n").exits(0);
    assert_eq!(outcome.out, "it = \"hello there\" : [char]\nit = 2 : int\n");
}

#[test]
fn files_are_loaded_first_and_the_device_is_chosen() {
    let file = "examples/nesl/quicksort.nesl";
    let outcome =
        broadloom_with_input(&["repl", file, "--device", "interp", "--int", "64"], b"quicksort([3, 1, 2]); 2 ^ 40;").exits(0);
    assert_eq!(outcome.out, "% Loading examples/nesl/quicksort.nesl. %\nit = [1, 2, 3] : [int]\nit = 1099511627776 : int\n");
    broadloom_with_input(&["repl", "no-such-file.nesl"], b"1;").exits(2).complains(&["there is no file no-such-file.nesl"]);
    broadloom_with_input(&["repl", "--device", "abacus"], b"1;").exits(3).complains(&["there is no device `abacus` here"]);
}

#[test]
fn a_form_of_many_lines_is_read_once() {
    let start = Instant::now();
    let text = format!("1 + 1;\n{}", "(\n".repeat(50_000));
    let outcome = script(&text).exits(1).complains(&["Error[N0006]"]);
    assert_eq!(outcome.out, "it = 2 : int\n");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// A command on a pseudo terminal, started by the tool `script`.
struct Pty {
    child: Child,
    output: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Pty {
    /// Starts the command; `None` if the tool is missing.
    fn start(state: &std::path::Path) -> Option<Pty> {
        // An interrupt also reaches the shell. Some shells end when the command does.
        let call = format!("trap : INT; {} repl; echo ended with $?", env!("CARGO_BIN_EXE_broadloom"));
        let mut child = Command::new("script")
            .args(["-qc", &call, "/dev/null"])
            .current_dir(root())
            .env("XDG_STATE_HOME", state)
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut stdout = child.stdout.take()?;
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Pty { child, output, seen: vec![] })
    }

    fn send(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).unwrap();
    }

    /// Waits for a new prompt. Redrawing a line also shows its prompt, but does not prepare the terminal.
    #[track_caller]
    fn shows_prompt(&mut self) {
        self.shows("\x1b[?2004h");
        self.shows("> ");
    }

    /// Waits for a text after the previously awaited texts.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(at) = self.seen.windows(text.len()).position(|part| part == text.as_bytes()) {
                self.seen.drain(..at + text.len());
                return;
            }
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(_) => panic!("{text:?} does not come: {}", String::from_utf8_lossy(&self.seen)),
            }
        }
    }
}

#[test]
fn a_person_edits_completes_and_interrupts() {
    let state = empty_folder("repl-state");
    let Some(mut pty) = Pty::start(&state) else {
        let _ = writeln!(std::io::stderr(), "skipped: there is no tool `script` for a pseudo terminal");
        return;
    };
    pty.shows_prompt();
    pty.send("x = 41;\r");
    pty.shows("x = 41 : int");
    pty.shows_prompt();
    // The evaluation ends, and the definitions are kept.
    pty.send("function loop(n) = loop(n + 1); loop(0);\r");
    pty.shows("loop = fn");
    pty.send("\x03");
    pty.shows("the run was stopped by SIGINT");
    pty.shows_prompt();
    // The line is dropped.
    pty.send("!");
    pty.shows("!");
    pty.send("\x03");
    pty.shows_prompt();
    pty.send("x +\r1;\r");
    pty.shows("it = 42 : int");
    pty.shows_prompt();
    pty.send("revers\t([1, 2]);\r");
    pty.shows("it = [2, 1] : [int]");
    pty.shows_prompt();
    // The name of a file is completed with the quote behind it.
    pty.send("load \"examples/nesl/quicksort.n\t;\r");
    pty.shows("% Loading examples/nesl/quicksort.nesl. %");
    pty.shows_prompt();
    pty.send("load \"examples/nesl/quicksort.n\"\x02\t\x05;\r");
    pty.shows("% Loading examples/nesl/quicksort.nesl. %");
    pty.shows_prompt();
    pty.send("\x04");
    // `script` does not always end with the status of the command.
    pty.shows("ended with 0");
    pty.child.wait().unwrap();
    let history = std::fs::read_to_string(state.join("broadloom/nesl_history")).unwrap();
    assert!(history.contains("x = 41;") && history.contains("reverse([1, 2]);"), "{history}");
}

//! Helper process that tests kernels on the GPU, restarted when a kernel destroys its context.
//!
//! The process reads the path of a kernel per line and answers with two lines. The first says that the kernel
//! is valid and that the GPU agrees without optimisations; the second gives the result with optimisations. A
//! process that ends or hangs after the first line was ended by the second run.

use crate::part::{Options, Summary, say};
use crate::saved;
use broadloom_cuda::Cuda;
use broadloom_device::{CacheFolder, Device};
use broadloom_filetest::Failure;
use broadloom_fuzzgen::{Kernel, module, run as run_kernel, run_within};
use broadloom_interp::Interp;
use broadloom_ptx::Verified;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Result of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The GPU agrees.
    Right,
    /// The GPU differs, first in this register or address.
    Differs(String),
    /// The kernel faults.
    Faults,
    /// The kernel does not end.
    Stuck,
    /// No verdict: the kernel is invalid, or the GPU also differs without optimisations.
    Invalid(String),
}

impl Verdict {
    /// Tests if this is the same kind of failure as another.
    pub(super) fn is_like(&self, other: &Verdict) -> bool {
        match (self, other) {
            // Removing stores moves the address; one difference may show in other registers.
            (Verdict::Differs(_), Verdict::Differs(_)) => true,
            (one, other) => one == other,
        }
    }
}

/// Time limit of an answer. Kernels end within milliseconds, and the code is small.
const ANSWER_LIMIT: Duration = Duration::from_secs(6);
/// Time limit of the interpreter, and of the GPU without optimisations: a kernel with removed pieces may not
/// end.
const RUN_LIMIT: Duration = Duration::from_secs(1);
const VALID: &str = "valid";

/// Helper process.
pub(super) struct KernelJudge {
    process: Process,
    path: PathBuf,
}

struct Process {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
}

impl Process {
    fn start() -> Result<Process, Failure> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program).args(["judge", "--alone"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(questions), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process without input and output".into());
        };
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(answer) = line.strip_prefix("judge: ")
                    && sender.send(answer.to_owned()).is_err()
                {
                    break;
                }
            }
        });
        Ok(Process { child, questions, answers })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl KernelJudge {
    pub(super) fn new() -> Result<KernelJudge, Failure> {
        let path = std::env::temp_dir().join(format!("broadloom-reduce-{}.ptx", std::process::id()));
        Ok(KernelJudge { process: Process::start()?, path })
    }

    /// Tests a kernel on the GPU.
    pub(super) fn ask(&mut self, kernel: &Kernel) -> Result<Verdict, Failure> {
        std::fs::write(&self.path, saved::text(kernel)).map_err(|error| format!("{}: {error}", self.path.display()))?;
        writeln!(self.process.questions, "{}", self.path.display())?;
        // A process that ended or hangs is restarted.
        let (verdict, is_lost) = match self.process.answers.recv_timeout(ANSWER_LIMIT) {
            Ok(answer) if answer == VALID => match self.process.answers.recv_timeout(ANSWER_LIMIT) {
                Ok(answer) => read(&answer),
                Err(RecvTimeoutError::Timeout) => (Verdict::Stuck, true),
                Err(RecvTimeoutError::Disconnected) => (Verdict::Faults, true),
            },
            Ok(answer) => {
                let is_lost = answer == LOST;
                (Verdict::Invalid(answer), is_lost)
            }
            Err(error) => (Verdict::Invalid(error.to_string()), true),
        };
        if is_lost {
            self.process = Process::start()?;
        }
        Ok(verdict)
    }
}

/// Answer for a kernel that destroyed the context without optimisations.
const LOST: &str = "lost";

/// Parses the result of the run with optimisations. Returns it with a flag for a lost context.
fn read(answer: &str) -> (Verdict, bool) {
    match answer.strip_prefix("differs ") {
        Some(place) => (Verdict::Differs(place.to_owned()), false),
        None if answer == "right" => (Verdict::Right, false),
        None => (Verdict::Faults, true),
    }
}

impl Drop for KernelJudge {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Runs the helper process.
pub(crate) fn run(_: &Options) -> Summary {
    let answer = |text: &str| say(&format!("judge: {text}"));
    let open = |level| {
        let cache = CacheFolder::Nowhere;
        Cuda::new(broadloom_cuda::Options { level, cache, ..broadloom_cuda::Options::default() }).map(Device::new)
    };
    let (Ok(plain), Ok(optimised)) = (open(Some(0)), open(None)) else {
        answer("no GPU");
        return Summary::default();
    };
    for path in std::io::stdin().lines().map_while(Result::ok) {
        let kernel = std::fs::read_to_string(&path).ok().and_then(|text| saved::kernel(&text));
        match kernel.ok_or_else(|| Failure(format!("{path} is not a kernel"))).and_then(|kernel| Ok((expected(&kernel)?, kernel)))
        {
            Err(why) => answer(&why.0),
            Ok(((code, expected), kernel)) => match run_within(RUN_LIMIT, &plain, &kernel, &code) {
                Err(_) => answer(LOST),
                Ok(outcome) if outcome.output != expected => answer("it differs without optimisations, too"),
                Ok(_) => {
                    answer(VALID);
                    match run_kernel(&optimised, &kernel, &code) {
                        Err(_) => answer("faults"),
                        Ok(outcome) => match (0..expected.len()).find(|at| expected[*at] != outcome.output[*at]) {
                            None => answer("right"),
                            Some(at) => answer(&format!("differs {}", kernel.describe_byte(at))),
                        },
                    }
                }
            },
        }
    }
    Summary::default()
}

/// Returns a kernel's code and its result on the interpreter, which must find no error.
pub(super) fn expected(kernel: &Kernel) -> Result<(Arc<Verified>, Vec<u8>), Failure> {
    let code = module(kernel).map_err(|_| "it is not valid")?;
    let interp = Interp::new(broadloom_interp::Options { check: true, ..broadloom_interp::Options::default() });
    let watched = interp.clone();
    let outcome =
        run_within(RUN_LIMIT, &Device::new(interp), kernel, &code).map_err(|error| error.to_string().replace('\n', " "))?;
    match watched.findings().is_empty() {
        true => Ok((code, outcome.output)),
        false => Err("the interpreter finds fault with it".into()),
    }
}

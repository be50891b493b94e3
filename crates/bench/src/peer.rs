//! Peers: the same jobs in C++ with OpenMP, compiled on this host. Each peer is a process that runs on
//! request.
//!
//! Compiled peers are kept in a folder. Their names contain a hash of all compiler inputs. Peers are
//! executed, so the folder belongs to this user alone. A peer is run only if a tag by the user's secret shows
//! that this user compiled it ([`private`](broadloom::device::private)). A peer that cannot be compiled or
//! run is not a failure of the benchmark: the reason is reported, and there is no ratio.
//!
//! Threads of OpenMP, NumPy and JAX spin for a while before they sleep. Therefore a peer is stopped, with all
//! its threads, after each answer, and continued for the next request. No process stays stopped: a peer is
//! continued before it is ended, and the system ends a peer whose parent process is gone.

use broadloom::device::private::{Folder, Refusal, Secret, Temporary};
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

const HEADER: &str = include_str!("../peers/peer.h");
const FLAGS: [&str; 4] = ["-O3", "-march=native", "-ffast-math", "-fopenmp"];

/// Maximum size of a compiled peer in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Reason why a peer gives no figure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    /// There is no compiler for C++.
    #[error("no C++ compiler")]
    NoCompiler,
    /// The interpreter has no NumPy.
    #[error("{} has no NumPy, without which there are no peers", .0.display())]
    NoNumPy(PathBuf),
    /// The folder of peers may not be used.
    #[error("{}; {}", .0, .0.help())]
    Folder(Refusal),
    /// A file cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// A program cannot be run.
    #[error("{} cannot be run: {error}", program.display())]
    Run {
        program: PathBuf,
        #[source]
        error: io::Error,
    },
    /// The compiler refuses a peer. The text is its first error.
    #[error("the peer does not compile: {0}")]
    Compile(String),
    /// The process ended before its answer.
    #[error("the peer ended early")]
    Ended,
    /// The answer is not understood.
    #[error("the peer says `{0}`")]
    Answer(String),
}

/// A compiler for peers.
#[derive(Debug)]
pub(crate) struct Compiler {
    command: String,
    /// The first line of its version output.
    pub(crate) version: String,
    /// The folder of compiled peers.
    pub(crate) folder: PathBuf,
}

impl Compiler {
    /// Finds a compiler: `$CXX`, `g++` or `c++`, whichever exists first. Peers are kept in `folder`, or in
    /// the cache folder.
    pub(crate) fn find(folder: Option<&Path>) -> Result<Compiler, PeerError> {
        let named = env::var("CXX").ok().filter(|name| !name.trim().is_empty());
        let candidates = named.into_iter().chain(["g++".to_owned(), "c++".to_owned()]);
        let found = candidates.filter_map(|command| Some((version(&command)?, command))).next();
        let (version, command) = found.ok_or(PeerError::NoCompiler)?;
        let folder = folder.map_or_else(cache_folder, Path::to_owned);
        Ok(Compiler { command, version, folder })
    }

    /// Describes the compiler of the peers.
    pub(crate) fn describe(&self) -> String {
        format!("C++/OpenMP, {} {}", self.command, FLAGS.join(" "))
    }

    /// Compiles and starts a peer.
    pub(crate) fn start(&self, name: &str, source: &str, size: usize) -> Result<Peer, PeerError> {
        self.start_with(name, source, &[], size)
    }

    /// Compiles and starts a peer that is linked with libraries, given as flags.
    pub(crate) fn start_with(&self, name: &str, source: &str, libraries: &[&str], size: usize) -> Result<Peer, PeerError> {
        let mut command = Command::new(self.compile(name, source, libraries)?);
        command.arg(size.to_string());
        Peer::start(command)
    }

    /// Compiles a peer, unless it is already in the folder.
    fn compile(&self, name: &str, source: &str, libraries: &[&str]) -> Result<PathBuf, PeerError> {
        let mut hash = blake3::Hasher::new();
        // `-march=native` depends on the host.
        let host = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let host = host.lines().find(|line| line.starts_with("flags") || line.starts_with("Features")).unwrap_or_default();
        for part in [source, HEADER, &self.version, &FLAGS.join(" "), &libraries.join(" "), host] {
            hash.update(part.as_bytes()).update(&[0]);
        }
        let stem = format!("{name}-{}", &hash.finalize().to_hex()[..16]);
        let folder = Folder::create(&self.folder).map_err(PeerError::Folder)?;
        let program = folder.path().join(&stem);
        // An existing peer is run only if this user compiled it.
        let tag_name = format!("{stem}.tag");
        let secret = Secret::of_user().ok();
        let tag = |bytes: &[u8]| secret.map(|secret| secret.tag(&[b"compiled peer", stem.as_bytes(), bytes]));
        let kept = folder.read(&stem, MOST_BYTES).ok().flatten().zip(folder.read(&tag_name, 32).ok().flatten());
        if kept.is_some_and(|(bytes, kept)| {
            tag(&bytes).is_some_and(|tag| blake3::Hash::from_slice(&kept).is_ok_and(|kept| kept == tag))
        }) {
            return Ok(program);
        }
        // Other processes may compile the same peer now. Each works in its own folder, and the last one to
        // finish wins.
        let work = Temporary::within(folder.path(), &stem).map_err(PeerError::Folder)?;
        let built = self.compile_in(work.path(), name, source, libraries)?;
        let written = fs::read(built).and_then(|bytes| {
            folder.write_program(&stem, &bytes)?;
            tag(&bytes).map_or(Ok(()), |tag| folder.write(&tag_name, tag.as_bytes()))
        });
        written.map(|()| program).map_err(|error| PeerError::Write { path: self.folder.clone(), error })
    }

    fn compile_in(&self, work: &Path, name: &str, source: &str, libraries: &[&str]) -> Result<PathBuf, PeerError> {
        let write =
            |path: &Path, text: &str| fs::write(path, text).map_err(|error| PeerError::Write { path: path.to_owned(), error });
        let (file, built) = (work.join(format!("{name}.cpp")), work.join(name));
        write(&file, source)?;
        write(&work.join("peer.h"), HEADER)?;
        let output = Command::new(&self.command).args(FLAGS).arg(&file).arg("-o").arg(&built).args(libraries).output();
        let output = output.map_err(|error| PeerError::Run { program: self.command.clone().into(), error })?;
        if output.status.success() { Ok(built) } else { Err(PeerError::Compile(first_error(&output.stderr))) }
    }
}

fn version(command: &str) -> Option<String> {
    let output = Command::new(command).arg("--version").output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

fn first_error(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().find(|line| line.contains("error")).or_else(|| text.lines().next());
    line.unwrap_or("it does not say why").trim().to_owned()
}

/// Returns the default folder of compiled peers.
pub(crate) fn cache_folder() -> PathBuf {
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    caches.unwrap_or_else(env::temp_dir).join("broadloom").join("peers")
}

/// A running peer.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer. It prepares its inputs in the background.
    pub(crate) fn start(mut command: Command) -> Result<Peer, PeerError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let started = command.spawn();
        let mut child = started.map_err(|error| PeerError::Run { program: command.get_program().into(), error })?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or(PeerError::Ended)?;
        Ok(Peer { child, input, output: BufReader::new(output) })
    }

    /// Wakes the peer for a request, and stops it again.
    fn awake<T>(&mut self, request: impl FnOnce(&mut Peer) -> Result<T, PeerError>) -> Result<T, PeerError> {
        self.signal("CONT");
        let answer = request(self);
        self.signal("STOP");
        answer
    }

    /// Sends a signal to stop or continue all its threads. If that is not possible, they keep running.
    fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let _ = Command::new("kill")
            .args(["-s", name, &process])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }

    fn answer<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, PeerError> {
        let input = self.input.as_mut().ok_or(PeerError::Ended)?;
        writeln!(input, "{what}").and_then(|()| input.flush()).map_err(|_| PeerError::Ended)?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|_| PeerError::Ended)?;
        let answer = line.trim();
        answer.parse().map_err(|_| if line.is_empty() { PeerError::Ended } else { PeerError::Answer(answer.to_owned()) })
    }

    /// Runs `count` repetitions in sequence. Returns the mean time of one.
    pub(crate) fn run(&mut self, count: u64) -> Result<Duration, PeerError> {
        let nanoseconds: u64 = self.awake(|peer| peer.answer(&format!("run {count}")))?;
        Ok(Duration::from_nanos(nanoseconds).div_f64(count as f64))
    }

    /// Returns the checksum of its results.
    pub(crate) fn checksum(&mut self) -> Result<f64, PeerError> {
        self.awake(|peer| peer.answer("sum"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A peer ends when its input is closed. A hanging peer is killed.
        drop(self.input.take());
        self.signal("CONT");
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A peer that another user placed or changed is compiled again and never run.
    #[test]
    fn only_peers_that_were_compiled_here_are_run() {
        let temporary = Temporary::new("broadloom-peers").unwrap();
        let script = temporary.path().join("compiler");
        // The last argument of a call is the wanted program.
        fs::write(&script, "#!/bin/sh\nfor last; do :; done\necho ours > $last\necho >> $0.calls\n").unwrap();
        chmod(&script, 0o700);
        let folder = temporary.path().join("peers");
        let compiler = Compiler { command: script.display().to_string(), version: "1".into(), folder: folder.clone() };
        let calls = || fs::read_to_string(temporary.path().join("compiler.calls")).unwrap().lines().count();
        let compiled = |calls_before: usize| {
            let program = compiler.compile("peer", "source", &[]).unwrap();
            assert_eq!(fs::read_to_string(&program).unwrap(), "ours\n");
            assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(calls(), calls_before + 1);
            program
        };
        let program = compiled(0);
        // Without a secret peers cannot be authenticated, and each is compiled anew.
        if Secret::of_user().is_ok() {
            compiler.compile("peer", "source", &[]).unwrap();
            assert_eq!(calls(), 1);
        }
        let seen = calls();
        fs::write(&program, "theirs\n").unwrap();
        compiled(seen);
        fs::remove_file(&program).unwrap();
        let theirs = temporary.path().join("theirs");
        fs::write(&theirs, "theirs\n").unwrap();
        symlink(&theirs, &program).unwrap();
        compiled(seen + 1);
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs\n");
        chmod(&program, 0o777);
        compiled(seen + 2);
        fs::write(folder.join(format!("{}.tag", program.file_name().unwrap().display())), [0; 32]).unwrap();
        compiled(seen + 3);
        chmod(&folder, 0o777);
        assert!(compiler.compile("peer", "source", &[]).unwrap_err().to_string().contains("others can write to it (mode 0777)"));
    }
}

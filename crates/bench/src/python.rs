//! Peers in Python: the same jobs with common Python libraries. Each peer is a process that runs on request.
//!
//! A peer uses the protocol of those in C++ ([`crate::peer`]). Benchmarks that a library does not support are
//! left out.

use crate::peer::{Peer, PeerError};
use broadloom::device::private::Folder;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../peers/python/", $name)))),*]
    };
}

const FILES: [(&str, &str); 13] = files!["peer.py" "programs.py" "programs_jax.py" "programs_torch.py" "by_awkward.py" "whole_arrays.py" "by_numpy.py" "by_numba.py" "by_jax.py" "by_torch.py" "by_halide.py" "by_halide_auto.py" "by_opencv.py"];

/// A library of the interpreter.
#[derive(Debug)]
pub(crate) struct PythonLibrary {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The benchmarks that it supports.
    benchmarks: Vec<String>,
}

/// A Python interpreter with libraries.
#[derive(Debug)]
pub(crate) struct Python {
    interpreter: PathBuf,
    program: PathBuf,
    pub(crate) libraries: Vec<PythonLibrary>,
}

impl Python {
    /// Finds the libraries of an interpreter. The programs of peers are kept in `folder`.
    pub(crate) fn find(interpreter: &Path, folder: &Path) -> Result<Python, PeerError> {
        let mut hash = blake3::Hasher::new();
        for (_, text) in FILES {
            hash.update(text.as_bytes()).update(&[0]);
        }
        let folder = folder.join(format!("python-{}", &hash.finalize().to_hex()[..16]));
        // Python imports files next to a program, so the folder belongs to this user alone.
        let folder = Folder::create(&folder).map_err(PeerError::Folder)?;
        let written = FILES.iter().try_for_each(|(name, text)| folder.write(name, text.as_bytes()));
        written.map_err(|error| PeerError::Write { path: folder.path().to_owned(), error })?;
        let program = folder.path().join("peer.py");
        let output = Command::new(interpreter).arg(&program).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = output.map_err(|error| PeerError::Run { program: interpreter.to_owned(), error })?;
        if !output.status.success() {
            return Err(PeerError::NoNumPy(interpreter.to_owned()));
        }
        let library = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            Some(PythonLibrary { name: words.next()?, version: words.next()?, benchmarks: words.collect() })
        };
        let libraries = String::from_utf8_lossy(&output.stdout).lines().filter_map(library).collect();
        Ok(Python { interpreter: interpreter.to_owned(), program, libraries })
    }

    /// Starts the peers of a benchmark. Returns each with its library's name.
    /// On a GPU, libraries use it if they can.
    pub(crate) fn start(&self, benchmark: &str, size: usize, gpu: bool) -> Vec<(String, Result<Peer, PeerError>)> {
        let able = self.libraries.iter().filter(|library| library.benchmarks.iter().any(|name| name == benchmark));
        let start = |library: &PythonLibrary| {
            let mut command = Command::new(&self.interpreter);
            command.arg(&self.program).args([&library.name, benchmark]).arg(size.to_string());
            command.env("BROADLOOM_PEER_DEVICE", if gpu { "gpu" } else { "cpu" });
            if gpu {
                // Several processes share the memory of the device.
                command.env("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.3");
            } else {
                command.env("JAX_PLATFORMS", "cpu");
            }
            (library.name.clone(), Peer::start(command))
        };
        able.map(start).collect()
    }

    /// Lists the libraries with their versions.
    pub(crate) fn describe(&self) -> String {
        let libraries: Vec<String> =
            self.libraries.iter().map(|library| format!("{} {}", library.name, library.version)).collect();
        libraries.join(", ")
    }
}

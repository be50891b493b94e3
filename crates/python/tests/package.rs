//! The tests of the Python package: one trial for each file `tests/test_*.py`.
//!
//! The files of the package and the module that Cargo built are put into a folder, as a wheel would put them, and
//! a Python with NumPy runs each file. Without such a Python the trials are skipped, with the reason.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::{env, fs};

/// Statement that fails if the package cannot run.
const NEEDS: &str = "import sys, numpy; sys.exit(sys.version_info < (3, 10) or int(numpy.__version__.split('.')[0]) < 2)";

/// A Python that can run the package, and the folder of the package; or the reason why there is none.
type Setup = Result<(PathBuf, PathBuf), String>;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let setup = Arc::new(OnceLock::new());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "py"));
    files.sort();
    let trial = |path: PathBuf| {
        let (setup, name) = (setup.clone(), path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        Trial::ignorable_test(name, move || run(&path, setup.get_or_init(prepare)))
    };
    let trials: Vec<Trial> = files.into_iter().map(trial).collect();
    assert!(!trials.is_empty(), "{} has no tests", folder.display());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs a file of tests.
fn run(path: &Path, setup: &Setup) -> Result<Completion, Failed> {
    let (python, package) = match setup {
        Ok(setup) => setup,
        Err(reason) => return Ok(Completion::ignored_with(format!("skipped: {reason}"))),
    };
    let mut command = Command::new(python);
    command.args(["-W", "error"]).arg(path).env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(Completion::Completed),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// Finds a Python with NumPy, or makes one, and lays out the package.
fn prepare() -> Setup {
    let python = python()?;
    let package = package().map_err(|error| format!("the package could not be laid out: {error}"))?;
    Ok((python, package))
}

fn works(python: &Path) -> bool {
    Command::new(python).args(["-c", NEEDS]).output().is_ok_and(|output| output.status.success())
}

fn python() -> Result<PathBuf, String> {
    let system = PathBuf::from("python3");
    if works(&system) {
        return Ok(system);
    }
    if Command::new(&system).arg("--version").output().is_err() {
        return Err("there is no python3".to_owned());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-venv");
    let python = folder.join("bin/python");
    if works(&python) {
        return Ok(python);
    }
    let _ = fs::remove_dir_all(&folder);
    let made = Command::new(&system).args(["-m", "venv"]).arg(&folder).output();
    let installed = Command::new(&python).args(["-m", "pip", "install", "--quiet", "numpy>=2"]).output();
    match (made, installed) {
        (Ok(_), Ok(output)) if output.status.success() && works(&python) => Ok(python),
        _ => Err("python3 has no NumPy 2, and pip could not install it".to_owned()),
    }
}

/// Copies the package and its module into a folder.
fn package() -> std::io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("package/broadloom");
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-package");
    let target = root.join("broadloom");
    let _ = fs::remove_dir_all(&target);
    fs::create_dir_all(&target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), target.join(entry.file_name()))?;
        }
    }
    let beside = env::current_exe()?.with_file_name("libbroadloom_python.so");
    fs::copy(beside, target.join("_core.abi3.so"))?;
    Ok(root)
}

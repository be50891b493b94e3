//! Finds LLVM 19 and links it, or reports which package to install.
//!
//! `llvm-sys` does not link LLVM itself. If LLVM is missing, its error would come before the error of this
//! script.

use std::path::{Path, PathBuf};
use std::process::Command;

/// LLVM version that the crate binds to.
const VERSION: &str = "19.";
/// LLVM components used by the crate and by `inkwell`, as named by `llvm-config`.
const COMPONENTS: [&str; 9] = ["core", "passes", "x86", "aarch64", "mcjit", "interpreter", "linker", "irreader", "bitwriter"];

fn main() {
    println!("cargo::rerun-if-env-changed=LLVM_SYS_191_PREFIX");
    println!("cargo::rerun-if-changed=build.rs");
    let prefix = std::env::var_os("LLVM_SYS_191_PREFIX").map(PathBuf::from);
    let candidates: Vec<PathBuf> = match &prefix {
        Some(prefix) => vec![prefix.join("bin/llvm-config")],
        None => ["llvm-config", "llvm-config-19", "llvm-config19", "llvm-config-19-64"].map(PathBuf::from).into(),
    };
    let is_right = |program: &&PathBuf| config(program, &["--version"]).is_some_and(|version| version.starts_with(VERSION));
    let Some(program) = candidates.iter().find(is_right) else {
        let place = prefix.map_or("PATH".to_owned(), |prefix| prefix.display().to_string());
        println!(
            "cargo::error=the device `cpu` is built with LLVM 19, which was not found in {place}: install `llvm-19-dev`, set \
             LLVM_SYS_191_PREFIX to its folder (`/usr/lib/llvm-19` on Debian), or leave the device out with \
             `default-features = false`"
        );
        return;
    };
    let linked = match std::env::var_os("CARGO_FEATURE_SHARED_LLVM") {
        Some(_) => link(program, "--link-shared", "dylib"),
        None => link(program, "--link-static", "static"),
    };
    if linked.is_none() {
        println!("cargo::error=`{}` does not tell which libraries LLVM consists of", program.display());
    }
}

/// Runs `llvm-config` and returns its output.
fn config(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Links LLVM and the libraries that it needs.
fn link(program: &Path, way: &str, kind: &str) -> Option<()> {
    println!("cargo::rustc-link-search=native={}", config(program, &["--libdir"])?);
    let name = |file: &str| {
        let name = file.strip_prefix("lib").unwrap_or(file);
        name.strip_suffix(".a").or(name.strip_suffix(".so")).unwrap_or(name).to_owned()
    };
    let mut names = vec!["--libnames", way];
    names.extend(COMPONENTS);
    for library in config(program, &names)?.split_whitespace() {
        println!("cargo::rustc-link-lib={kind}={}", name(library));
    }
    let mut system = vec!["--system-libs", way];
    system.extend(COMPONENTS);
    for flag in config(program, &system)?.split_whitespace() {
        match (flag.strip_prefix("-l"), Path::new(flag)) {
            (Some(library), _) => println!("cargo::rustc-link-lib=dylib={library}"),
            (None, path) if path.is_absolute() => {
                let file = path.file_name()?.to_str()?;
                println!("cargo::rustc-link-search=native={}", path.parent()?.display());
                println!("cargo::rustc-link-lib=dylib={}", name(file));
            }
            _ => {}
        }
    }
    println!("cargo::rustc-link-lib=dylib=stdc++");
    Some(())
}

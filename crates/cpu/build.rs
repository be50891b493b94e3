//! Says what to install where there is no LLVM. The crate that binds to LLVM would say so in other words.

use std::path::Path;
use std::process::Command;

/// The version that the crate binds to.
const VERSION: &str = "19.";

fn main() {
    println!("cargo::rerun-if-env-changed=LLVM_SYS_191_PREFIX");
    println!("cargo::rerun-if-changed=build.rs");
    let prefix = std::env::var_os("LLVM_SYS_191_PREFIX");
    let is_right = |program: &Path| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with(VERSION))
    };
    let found = match &prefix {
        Some(prefix) => is_right(&Path::new(prefix).join("bin/llvm-config")),
        None => {
            ["llvm-config", "llvm-config-19", "llvm-config19", "llvm-config-19-64"].iter().any(|name| is_right(Path::new(name)))
        }
    };
    if !found {
        println!(
            "cargo::error=the device `cpu` is built with LLVM 19, which was not found in {}: install `llvm-19-dev`, set \
             LLVM_SYS_191_PREFIX to its folder (`/usr/lib/llvm-19` on Debian), or leave the device out with \
             `default-features = false`",
            prefix.map_or("PATH".to_owned(), |prefix| prefix.to_string_lossy().into_owned())
        );
    }
}

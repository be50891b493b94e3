//! Kernels of patterns for GPUs, assembled by NVIDIA's assembler. Without it the test is skipped.

use crate::support::h200;
use crate::{sweep, tiled};
use broadloom_scalar::{Element, Lowering, lower_with};
use broadloom_skeleton::{Pattern, Staging, Sweep, SweepSpread, Tile, TiledStencil};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the assembler: in `CUDA_HOME`, on the path, or in the default installation folder.
fn assembler() -> Option<PathBuf> {
    let home = std::env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let usual = ["/usr/local/cuda/bin", "/opt/cuda/bin"].map(PathBuf::from);
    home.into_iter().chain(path).chain(usual).map(|folder| folder.join("ptxas")).find(|file| file.is_file())
}

fn assemble(ptxas: &Path, number: usize, pattern: &Pattern) {
    let program = pattern.program(&h200().machine).unwrap();
    let lowering = Lowering { target: broadloom_ptx::Target::sm(90), ..Lowering::default() };
    let text = broadloom_ptx::print(&lower_with(&program.kernels, &lowering).unwrap());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pattern_{number}_{}.ptx", std::process::id()));
    std::fs::write(&file, &text).unwrap();
    let output = Command::new(ptxas).args(["-arch=sm_90", "-o", "/dev/null"]).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn sweeps_and_tiled_stencils_are_assembled() {
    let Some(ptxas) = assembler() else {
        let _ = writeln!(std::io::stderr(), "skipped: there is no `ptxas`");
        return;
    };
    let staged = SweepSpread { staged: true, split: true };
    let patterns: [Pattern; 6] = [
        sweep::sweep(2, 1, Element::F32, 2).into(),
        Sweep { spread: SweepSpread::default(), ..sweep::sweep(3, 0, Element::Bool, 3) }.into(),
        sweep::linear(2, 1, true, staged).into(),
        sweep::linear(1, 0, false, SweepSpread { staged: false, split: true }).into(),
        tiled::stencil(2, Element::F64, 0).into(),
        TiledStencil { staging: Staging::Tile(Tile { columns: 2, rows: 4 }), ..tiled::stencil(3, Element::U8, 3) }.into(),
    ];
    patterns.iter().enumerate().for_each(|(number, pattern)| assemble(&ptxas, number, pattern));
}

//! Test that the list of functions in `docs/CUDA_PROGRAMS.md` is current. `BLESS=1` rewrites it.

use broadloom_cudart::functions::{FUNCTIONS, ImplementationState, supported};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CUDA_PROGRAMS.md");
const MARK: &str = "<!-- supported -->\n";

#[test]
fn the_page_lists_what_is_done() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, _) = page.split_once(MARK).expect("the page has lost its mark");
    let expected = format!("{before}{MARK}\n{}", supported().trim_end().to_owned() + "\n");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PAGE, expected).unwrap();
        return;
    }
    assert!(page == expected, "docs/CUDA_PROGRAMS.md is not what the list says; BLESS=1 rewrites it");
}

/// Functions required by the programs of NVIDIA's samples, Rodinia, PolyBench and Parboil.
#[test]
fn what_every_program_uses_is_done() {
    for name in ["cudaMalloc", "cudaMemcpy", "cudaLaunchKernel", "__cudaRegisterFatBinary", "cudaStreamCreate", "cuLaunchKernel"]
    {
        let function = FUNCTIONS.iter().find(|function| function.name == name);
        assert_eq!(function.map(|function| function.state), Some(ImplementationState::Done), "{name}");
    }
}

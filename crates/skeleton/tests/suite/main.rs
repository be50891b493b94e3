//! All tests of the crate in one program, which is linked once and keeps all cores busy until the end.

mod arrange;
mod chain;
mod cost;
mod layout;
mod library;
mod lookback;
mod map;
mod position;
mod product;
mod ptxas;
mod reduce;
mod relay;
mod scan;
mod scatter;
mod segments;
mod sort;
mod stencil;
mod support;
mod sweep;
mod tiled;

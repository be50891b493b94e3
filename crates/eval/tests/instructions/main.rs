//! All tests of the crate in one program, which is linked once and keeps all cores busy.

mod approximate;
mod arith;
mod bits;
mod carry;
mod compare;
mod convert_float;
mod convert_int;
mod dot;
mod float;
mod function;
mod matrix;
mod mbarrier;
mod narrow;
mod operation;
mod soft;
mod testing;
mod texture;
mod video;
mod video_simd;

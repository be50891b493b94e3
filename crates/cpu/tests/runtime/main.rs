//! All tests of the crate in one program, which is linked once and keeps all cores busy.

#![allow(unsafe_code, reason = "tests switch stacks, call machine code and read raw memory")]

mod ahead;
mod background;
mod barrier;
mod cache;
mod calls;
mod cluster;
mod compact;
mod compile;
mod cpus;
mod device;
mod divide;
mod edges;
mod ending;
mod exchange;
mod execute;
mod externs;
mod fiber;
mod host;
mod large;
mod machine;
mod map;
mod memory;
mod object;
mod options;
mod pairs;
mod probe;
mod registers;
mod shaped;
mod support;
mod testing;
mod texels;
mod variables;
mod waiting;
mod window;

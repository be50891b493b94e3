//! Test files and corpus.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

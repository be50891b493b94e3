//! The elementary functions have the accuracy of their table, and the same bits on every device.

#[path = "../support/mod.rs"]
mod support;

mod applied;
mod devices;
mod double;
mod every;
mod fast;
mod half;
mod page;
mod reference;
mod single;
mod special;

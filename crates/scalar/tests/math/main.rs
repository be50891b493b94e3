//! The elementary functions are as exact as their table says, and the same on every device.

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

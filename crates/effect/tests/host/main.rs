//! Tests of the parts of effects that need no device: images, files, the catalogue and the references.

mod bands;
mod catalogue;
mod dpx;
mod file;
mod formats;
mod image;
mod jpeg;
mod metadata;
mod parts;
mod profiles;
mod reference;
mod values;

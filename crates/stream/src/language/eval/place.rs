//! Places: variables and their parts.

use super::code::{Code, World};
use super::element::{element, outside, part};
use super::stop::Stop;
use crate::language::codes;
use crate::language::core::{Access, MAX_PATH, Place, Root, Value};
use std::sync::Arc;

/// Evaluated indices of a place, one for each access.
pub(super) type Path = [i32; MAX_PATH];

impl<'a, W: World> Code<'a, W> {
    /// Evaluates the indices of a place, left to right.
    pub(super) fn resolve(&mut self, place: &'a Place) -> Result<Path, Stop> {
        let mut path = [0; MAX_PATH];
        for (slot, access) in path.iter_mut().zip(&place.path) {
            if let Access::Index(index) = access {
                *slot = self.int(index)?;
            }
        }
        Ok(path)
    }

    fn root(&self, root: Root) -> &Value {
        match root {
            Root::Local(index) => &self.stack[self.base + index],
            Root::Field(index) => &self.fields[index],
            Root::Param(index) => &self.params[index],
            Root::Static(index) => &self.statics[index],
        }
    }

    pub(super) fn read(&mut self, place: &'a Place) -> Result<Value, Stop> {
        let path = self.resolve(place)?;
        self.read_at(place, &path)
    }

    pub(super) fn read_at(&self, place: &Place, path: &Path) -> Result<Value, Stop> {
        match place.path.split_last() {
            Some((access @ (Access::Real | Access::Imaginary), way)) => part(self.find(place, way, path)?, access, 0, place.span),
            _ => self.find(place, &place.path, path).cloned(),
        }
    }

    /// Returns the value at the end of a prefix of the path of a place.
    pub(super) fn find(&self, place: &Place, way: &[Access], path: &Path) -> Result<&Value, Stop> {
        let mut value = self.root(place.root);
        for (access, index) in way.iter().zip(path) {
            value = match (value, access) {
                (Value::Array(parts), Access::Index(_)) => element(parts, *index, place.span)?,
                (Value::Struct(parts), Access::Member(member)) => &parts[*member],
                _ => return Err(unset(place)),
            };
        }
        if matches!(value, Value::Unset) { Err(unset(place)) } else { Ok(value) }
    }

    /// Returns the value at a place that is not a part of a complex number.
    pub(super) fn look(&mut self, place: &'a Place) -> Result<&Value, Stop> {
        let value = match &place.path[..] {
            [] => self.root(place.root),
            [Access::Index(index)] => {
                let index = self.int(index)?;
                match self.root(place.root) {
                    Value::Array(parts) => element(parts, index, place.span)?,
                    _ => return Err(unset(place)),
                }
            }
            way => {
                let path = self.resolve(place)?;
                self.find(place, way, &path)?
            }
        };
        if matches!(value, Value::Unset) { Err(unset(place)) } else { Ok(value) }
    }

    /// Returns the variable at the end of a prefix of the path of a place.
    pub(super) fn slot(&mut self, place: &Place, way: &[Access], path: &Path) -> Result<&mut Value, Stop> {
        let mut value = match place.root {
            Root::Local(index) => &mut self.stack[self.base + index],
            Root::Field(index) => &mut self.fields[index],
            Root::Static(index) => &mut Arc::make_mut(&mut self.statics)[index],
            Root::Param(_) => {
                return Err(Stop::error(codes::CONSTANT, "a parameter of the stream cannot be changed", place.span));
            }
        };
        for (access, index) in way.iter().zip(path) {
            value = match (value, access) {
                (Value::Array(parts), Access::Index(_)) => {
                    let length = parts.len();
                    parts.get_mut(*index as u32 as usize).ok_or_else(|| outside(*index, length, place.span))?
                }
                (Value::Struct(parts), Access::Member(member)) => &mut parts[*member],
                _ => return Err(unset(place)),
            };
        }
        Ok(value)
    }

    pub(super) fn write_at(&mut self, place: &Place, path: &Path, new: Value) -> Result<(), Stop> {
        if let Some((access @ (Access::Real | Access::Imaginary), way)) = place.path.split_last() {
            let slot = self.slot(place, way, path)?;
            // Setting one part of an unset complex local: the other part is 0.
            let (real, imaginary) = match slot {
                Value::Complex(real, imaginary) => (*real, *imaginary),
                Value::Unset => (0.0, 0.0),
                _ => return Err(unset(place)),
            };
            if let Value::Float(new) = new {
                *slot = if matches!(access, Access::Real) { Value::Complex(new, imaginary) } else { Value::Complex(real, new) };
            }
            return Ok(());
        }
        let value = self.slot(place, &place.path, path)?;
        if let (Value::Array(old), Value::Array(new)) = (&*value, &new)
            && old.len() != new.len()
        {
            let message = format!("an array of length {} is assigned to one of length {}", new.len(), old.len());
            return Err(Stop::error(codes::RUN_TIME, message, place.span).help("give both the same length"));
        }
        *value = new;
        Ok(())
    }
}

#[cold]
fn unset(place: &Place) -> Stop {
    Stop::error(codes::RUN_TIME, format!("the variable `{}` is read before it is set", place.name), place.span)
        .help("give it a value where it is declared")
}

//! Data in files as values.

use super::fault::{Fault, Run};
use super::{Evaluation, Value};
use crate::core::{Instantiate, Primitive};
use crate::data::{self, Cell, Cells, LineFormat};
use crate::types::{Base, Type, TypeId};
use crate::vcode::Layout;

impl Evaluation<'_> {
    pub(super) fn data(&mut self, primitive: Primitive, argument: &Value, ty: TypeId, result: TypeId) -> Run<Value> {
        let no_functions = || Fault::new(crate::codes::RUN_TIME, "a file holds no functions");
        if primitive == Primitive::DataText {
            let (value, kind, names) = argument.three();
            let own = if let Type::Pair(own, _) = self.env.types[ty] { own } else { ty };
            let cell = cell(value, &self.layout_of(own).ok_or_else(no_functions)?);
            let names: Vec<Vec<u8>> = names.elements().iter().map(|name| name.bytes().to_vec()).collect();
            let text = match (kind.int(), cell) {
                (2, cell) => data::npy_of(&cell, self.state.options.widths),
                (kind, Cell::Seq(rows)) => data::text_of(LineFormat::of(kind), &rows, &names),
                (kind, Cell::Text(text)) => {
                    let rows: Vec<Cell> = text.into_iter().map(Cell::Char).collect();
                    data::text_of(LineFormat::of(kind), &rows, &names)
                }
                (kind, row) => data::text_of(LineFormat::of(kind), &[row], &names),
            };
            return match text {
                Ok(text) => self.shared_text(text.into()),
                Err(error) => Fault::at_run_time(error.to_string()),
            };
        }
        let layout = self.layout_of(result).ok_or_else(no_functions)?;
        let (kind, names, text, name) = if primitive == Primitive::ReadTable {
            let (_, kind, rest) = argument.three();
            let (names, text, name) = rest.three();
            (kind.int(), names.elements().iter().map(|name| name.bytes().to_vec()).collect(), text, name)
        } else {
            let (_, text, name) = argument.three();
            (0, vec![], text, name)
        };
        let cells = self.read_data(primitive, &layout, (kind, &names), &text.bytes(), &name.bytes())?;
        self.values(cells)?.pop().ok_or_else(no_functions)
    }

    /// Reads the content of a file as one value of a layout. An error names the file, the line and the column.
    pub(crate) fn read_data(
        &mut self,
        primitive: Primitive,
        layout: &Layout,
        (kind, names): (i64, &[Vec<u8>]),
        text: &[u8],
        file: &[u8],
    ) -> Run<Cells> {
        let (widths, file) = (self.state.options.widths, String::from_utf8_lossy(file));
        let read = match (primitive, layout) {
            (Primitive::ReadTable, Layout::Seq(element)) => data::read_lines(LineFormat::of(kind), text, element, names, widths)
                .map_err(|error| {
                    let (line, column) = data::place(text, error.at);
                    format!("the file `{file}`, line {line}, column {column}: {}", error.reason)
                }),
            _ => data::read_npy(text, layout, widths)
                .map_err(|error| format!("the file `{file}`, byte {}: {}", error.at, error.reason)),
        };
        read.or_else(Fault::at_run_time)
    }

    /// Makes values from cells.
    fn values(&mut self, cells: Cells) -> Run<Vec<Value>> {
        Ok(match cells {
            Cells::Int(values) => values.into_iter().map(Value::Int).collect(),
            Cells::Float(values) => values.into_iter().map(Value::Float).collect(),
            Cells::Bool(values) => values.into_iter().map(Value::Bool).collect(),
            Cells::Char(values) => values.into_iter().map(Value::Char).collect(),
            Cells::Pair(parts) => {
                let (firsts, rests) = (self.values(parts.0)?, self.values(parts.1)?);
                firsts.into_iter().zip(rests).map(|(first, rest)| Value::pair(first, rest)).collect()
            }
            Cells::Seq(lengths, element) => {
                let mut elements = self.values(*element)?.into_iter();
                lengths.into_iter().map(|length| self.seq(elements.by_ref().take(length).collect())).collect::<Run<_>>()?
            }
        })
    }

    /// Returns the layout of a type; `None` for a type with functions.
    fn layout_of(&mut self, ty: TypeId) -> Option<Layout> {
        Some(match self.env.types[ty].clone() {
            Type::Base(Base::Int) => Layout::Int,
            Type::Base(Base::Float) => Layout::Float,
            Type::Base(Base::Bool) => Layout::Bool,
            Type::Base(Base::Char) => Layout::Char,
            Type::Seq(element) => Layout::Seq(Box::new(self.layout_of(element)?)),
            Type::Pair(first, rest) => Layout::Pair(Box::new(self.layout_of(first)?), Box::new(self.layout_of(rest)?)),
            Type::Data(datatype, parts) => {
                let content = self.env.datatypes[datatype].content;
                let content = Instantiate::new(&mut self.env.types, &parts).ty(content);
                self.layout_of(content)?
            }
            Type::Function { .. } | Type::Variable(_) | Type::Definition(_) | Type::Closure(..) => return None,
        })
    }
}

/// Returns a value of a layout as data.
fn cell(value: &Value, layout: &Layout) -> Cell {
    match layout {
        Layout::Int | Layout::Nothing => Cell::Int(value.int()),
        Layout::Float => Cell::Float(value.float()),
        Layout::Bool => Cell::Bool(value.bool()),
        Layout::Char => Cell::Char(value.char()),
        Layout::Seq(element) if **element == Layout::Char => Cell::Text(value.bytes().to_vec()),
        Layout::Seq(element) => Cell::Seq(value.elements().iter().map(|value| cell(value, element)).collect()),
        Layout::Pair(..) => {
            let mut fields = vec![];
            add_fields(value, layout, &mut fields);
            Cell::Fields(fields)
        }
    }
}

fn add_fields(value: &Value, layout: &Layout, out: &mut Vec<Cell>) {
    match layout {
        Layout::Pair(first, rest) => {
            let (a, b) = value.parts();
            add_fields(a, first, out);
            add_fields(b, rest, out);
        }
        _ => out.push(cell(value, layout)),
    }
}

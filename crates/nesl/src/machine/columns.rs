//! Columns of callers as entries of the stack, and back.

use super::Machine;
use crate::eval::{Fault, Run};
use crate::run::{Column, Entry};
use crate::run::{DeviceSegdes, OpResult, Vector, on_device};
use crate::vcode::{Layout, Type};
use broadloom_graph::{Amount, Node, Segments, Total};
use std::vec::IntoIter;

impl Machine<'_, '_, '_> {
    /// Leaves the results on the device when the program ends.
    pub(crate) fn keeping_results(&mut self) -> &mut Self {
        self.keeps_results = true;
        self
    }

    /// Makes entries from columns. Checks that lengths agree, that offsets do not decrease, and that types
    /// are those of the layout.
    pub(crate) fn entries_of(&mut self, layout: &Layout, columns: Vec<Column>) -> Run<Vec<Entry>> {
        let (mut columns, mut entries) = (columns.into_iter(), vec![]);
        self.argument(layout, &mut columns, &mut entries)?;
        match columns.next() {
            None => Ok(entries),
            Some(_) => Fault::at_run_time(format!("more columns are given than the argument has: it is {layout}")),
        }
    }

    /// Adds the entries of one value.
    fn argument(&mut self, layout: &Layout, columns: &mut IntoIter<Column>, out: &mut Vec<Entry>) -> Run<()> {
        match layout {
            Layout::Pair(first, rest) => {
                self.argument(first, columns, out)?;
                self.argument(rest, columns, out)
            }
            Layout::Seq(element) => {
                let (start, count) = (out.len(), self.elements_of(element, columns, None, out)?);
                let Some(count) = count else { return Fault::at_run_time("a sequence of functions cannot be given") };
                let segdes = self.single(&count)?;
                out.insert(start, segdes);
                Ok(())
            }
            _ => self.elements_of(layout, columns, Some(1.into()), out).map(|_| ()),
        }
    }

    /// Adds the entries of several values; returns their number. If `count` is given, it must be that number.
    fn elements_of(
        &mut self,
        layout: &Layout,
        columns: &mut IntoIter<Column>,
        count: Option<Amount>,
        out: &mut Vec<Entry>,
    ) -> Run<Option<Amount>> {
        let ty = match layout {
            Layout::Nothing => return Ok(count),
            Layout::Pair(first, rest) => {
                let count = self.elements_of(first, columns, count, out)?;
                return self.elements_of(rest, columns, count, out);
            }
            Layout::Seq(element) => {
                let offsets = match next(columns, layout)? {
                    Column::Device(node) if self.size_of(&node).is_some() => {
                        Column::Ints(self.size_of(&node).iter().map(Amount::get).collect())
                    }
                    offsets => offsets,
                };
                let (start, is_device) = (out.len(), matches!(offsets, Column::Device(_)));
                let (found, total, segdes) = match offsets {
                    Column::Device(offsets) => {
                        let found = Some(length(&offsets)?.minus(&1.into())).filter(|found| !found.is_less(&0.into()));
                        (found, None, Some(offsets))
                    }
                    Column::Ints(offsets) => {
                        let lengths = lengths(&offsets)?;
                        let total = Amount::from(lengths.iter().sum::<usize>());
                        out.push(self.segments(lengths)?);
                        (offsets.len().checked_sub(1).map(Amount::from), Some(total), None)
                    }
                    Column::Floats(_) | Column::Bools(_) => return Fault::at_run_time("offsets are ints"),
                };
                agree(count, found.clone())?;
                let total = self.elements_of(element, columns, total, out)?;
                if let (true, Some(offsets)) = (is_device, segdes) {
                    let made = self.device_segments(&offsets, total)?;
                    out.insert(start, made);
                }
                return Ok(found);
            }
            Layout::Int | Layout::Char => Type::Int,
            Layout::Float => Type::Float,
            Layout::Bool => Type::Bool,
        };
        let entry = match (ty, next(columns, layout)?) {
            (Type::Int, Column::Ints(values)) => {
                let values = values.into_iter().map(|value| self.world.wrap(value)).collect();
                self.ints(values)?
            }
            (Type::Float, Column::Floats(values)) => {
                let values = values.into_iter().map(|value| self.world.round(value)).collect();
                self.floats(values)?
            }
            (Type::Bool, Column::Bools(values)) => self.bools(values)?,
            (Type::Int, Column::Device(node)) if self.size_of(&node).is_some() => {
                let size = self.size_of(&node).unwrap_or_else(|| 0.into());
                self.number(&size)?
            }
            (_, Column::Device(node)) => {
                let wanted = self.accelerator.as_ref().map(|accelerator| accelerator.element_of(ty));
                if wanted != Some(node.ty().element()) || !node.ty().is_scalar() {
                    return Fault::at_run_time(format!("a column of {} cannot hold {layout}", node.ty()));
                }
                length(&node)?;
                self.own(&node)?;
                self.entry(OpResult::Vector(ty, Vector::of(node)))?
            }
            _ => return Fault::at_run_time(format!("a column does not hold {layout}")),
        };
        let found = Some(entry.size());
        agree(count, found.clone())?;
        out.push(entry);
        Ok(found)
    }

    /// Returns the int that a column of a traced call represents.
    fn size_of(&self, node: &Node) -> Option<Amount> {
        self.accelerator.as_ref()?.size_of(node)
    }

    /// Refuses a node of another device.
    fn own(&mut self, node: &Node) -> Run<()> {
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Fault::at_run_time("there is no device") };
        if accelerator.context()?.is_same(node.context()) {
            return Ok(());
        }
        Fault::at_run_time("a column belongs to another context; `Program::context` has that of the program")
    }

    fn device_segments(&mut self, offsets: &Node, total: Option<Amount>) -> Run<Entry> {
        self.own(offsets)?;
        let Some(total) = total else { return Fault::at_run_time("a sequence of functions cannot be given") };
        let segments = on_device(Segments::from_offsets(offsets, Total::Amount(total.clone())))?;
        let Some(accelerator) = self.accelerator.as_deref_mut() else { return Fault::at_run_time("there is no device") };
        let segdes = DeviceSegdes::of_segments(accelerator, segments, total)?;
        self.entry(OpResult::Segdes(segdes))
    }

    /// Makes columns from the entries of a value.
    pub(crate) fn columns_of(&mut self, layout: &Layout, entries: Vec<Entry>) -> Run<Vec<Column>> {
        let (mut entries, mut columns) = (entries.into_iter(), vec![]);
        self.result(layout, true, &mut entries, &mut columns)?;
        Ok(columns)
    }

    fn result(&mut self, layout: &Layout, is_one: bool, entries: &mut IntoIter<Entry>, out: &mut Vec<Column>) -> Run<()> {
        match layout {
            Layout::Nothing => Ok(()),
            Layout::Pair(first, rest) => {
                self.result(first, is_one, entries, out)?;
                self.result(rest, is_one, entries, out)
            }
            Layout::Seq(element) => {
                match (is_one, entries.next()) {
                    // The length of the only sequence is that of its elements.
                    (true, _) => {}
                    (false, Some(Entry::Segdes(segments))) => {
                        let mut offsets = vec![0];
                        offsets.extend(segments.ranges().map(|range| range.end as i64));
                        out.push(Column::Ints(offsets));
                    }
                    (false, Some(Entry::DeviceSegdes(segdes))) => {
                        let Some(accelerator) = self.accelerator.as_deref_mut() else { return misfit() };
                        let segdes = accelerator.current_segdes(&segdes)?;
                        let segments = accelerator.segments(&segdes)?;
                        out.push(Column::Device(accelerator.finished(&on_device(segments.offsets())?)?));
                    }
                    _ => return misfit(),
                }
                self.result(element, false, entries, out)
            }
            Layout::Int | Layout::Char | Layout::Float | Layout::Bool => {
                out.push(match entries.next() {
                    Some(Entry::Int(values)) => match (Entry::Int(values.clone()).amount(), self.accelerator.as_deref_mut()) {
                        (Some(amount), Some(accelerator)) => accelerator.count_as_column(&amount)?,
                        _ => Column::Ints(values.to_vec()),
                    },
                    Some(Entry::Bytes(values)) => Column::Ints(values.iter().map(|&value| i64::from(value)).collect()),
                    Some(Entry::Float(values)) => Column::Floats(values.to_vec()),
                    Some(Entry::Bool(values)) => Column::Bools(values.to_vec()),
                    Some(Entry::Device(vector)) => {
                        let Some(accelerator) = self.accelerator.as_deref_mut() else { return misfit() };
                        let vector = accelerator.vector(&Entry::Device(vector))?;
                        let whole = accelerator.whole(&vector)?;
                        Column::Device(accelerator.finished(&whole)?)
                    }
                    _ => return misfit(),
                });
                Ok(())
            }
        }
    }
}

fn misfit<T>() -> Run<T> {
    Fault::at_run_time("the vectors of a result do not fit its type")
}

fn next(columns: &mut IntoIter<Column>, layout: &Layout) -> Run<Column> {
    match columns.next() {
        Some(column) => Ok(column),
        None => Fault::at_run_time(format!("a column is missing: {layout}")),
    }
}

fn agree(count: Option<Amount>, found: Option<Amount>) -> Run<()> {
    match (count, found) {
        (_, None) => Fault::at_run_time("there is one more offset than there are sequences"),
        (Some(count), Some(found)) if !count.equals(&found) => {
            let (count, found) = (count.get(), found.get());
            Fault::at_run_time(format!("columns have different lengths: {count} and {found}"))
        }
        _ => Ok(()),
    }
}

/// Returns the number of elements of a line whose length the host knows.
fn length(node: &Node) -> Run<Amount> {
    if node.bound().rank() == 1 && node.length().is_none() {
        return Ok(node.bound().size());
    }
    Fault::at_run_time("a column has one axis, whose length the host knows")
}

/// Returns the lengths between offsets.
fn lengths(offsets: &[i64]) -> Run<Vec<usize>> {
    let good = offsets.first() == Some(&0) && offsets.windows(2).all(|pair| pair[0] <= pair[1]);
    if !good {
        return Fault::at_run_time("offsets begin with 0 and do not decrease");
    }
    Ok(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).collect())
}

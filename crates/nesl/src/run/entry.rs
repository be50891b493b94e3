//! Entries of the stack: vectors of the host and of a device. Vectors are shared; their bytes are charged to
//! the run while they are alive.

use super::extent::Extent;
use super::ledger::VectorCharge;
use super::segdes::DeviceSegdes;
use super::vector::Vector;
use crate::eval::{Charge, Meter, Run};
use crate::vcode::Type;
use broadloom_graph::{Amount, Length, Node};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// A vector that is charged to a run.
///
/// During the trace of a call, a single int or length may depend on the sizes of columns. Code that reads it
/// as a number makes the trace valid for that number only; code that keeps the relation reads the amount.
#[derive(Debug)]
pub(crate) struct Charged<T> {
    values: T,
    /// The only element, as an amount that depends on the sizes of columns.
    amount: Option<Amount>,
    /// The copy on a device, once there is one.
    pub(crate) copy: OnceCell<DeviceCopy>,
    _charge: Charge,
}

impl<T> Charged<T> {
    fn new(values: T, charge: Charge) -> Rc<Charged<T>> {
        Rc::new(Charged { values, amount: None, copy: OnceCell::new(), _charge: charge })
    }
}

impl<T> std::ops::Deref for Charged<T> {
    type Target = T;
    fn deref(&self) -> &T {
        if let Some(amount) = &self.amount {
            amount.get();
        }
        &self.values
    }
}

impl Charged<Segments> {
    /// Returns the length of the only segment; `None` for several segments.
    pub(crate) fn single(&self) -> Option<Amount> {
        match (&self.amount, &self.values.lengths[..]) {
            (Some(amount), _) => Some(amount.clone()),
            (None, [length]) => Some(Amount::from(*length)),
            (None, _) => None,
        }
    }
}

/// The lengths of segments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    pub(crate) lengths: Vec<usize>,
    pub(crate) total: usize,
}

impl Segments {
    /// Iterates over the ranges of the segments.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut end = 0;
        self.lengths.iter().map(move |&length| {
            let start = end;
            end += length;
            start..end
        })
    }
}

/// An entry of the stack.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Int(Rc<Charged<Vec<i64>>>),
    /// Ints from 0 to 255, a byte for each: characters.
    Bytes(Rc<Charged<Arc<[u8]>>>),
    Float(Rc<Charged<Vec<f64>>>),
    Bool(Rc<Charged<Vec<bool>>>),
    Segdes(Rc<Charged<Segments>>),
    Pair(Rc<(Entry, Entry)>),
    /// A vector on a device.
    Device(Rc<DeviceVector>),
    /// A segment descriptor on a device.
    DeviceSegdes(Rc<DeviceSegdes>),
}

impl Entry {
    pub(crate) fn ty(&self) -> Option<Type> {
        Some(match self {
            Entry::Int(_) | Entry::Bytes(_) => Type::Int,
            Entry::Float(_) => Type::Float,
            Entry::Bool(_) => Type::Bool,
            Entry::Segdes(_) => Type::Segdes,
            Entry::Pair(_) => return None,
            Entry::Device(vector) => vector.ty,
            Entry::DeviceSegdes(_) => Type::Segdes,
        })
    }

    pub(crate) fn type_name(&self) -> &'static str {
        self.ty().map_or("PAIR", Type::name)
    }

    /// Returns the number of elements; for a segment descriptor, the number of segments. If only a device
    /// knows the number, it is an upper bound.
    pub(crate) fn len(&self) -> usize {
        match self {
            Entry::Int(values) => values.values.len(),
            Entry::Bytes(values) => values.values.len(),
            Entry::Float(values) => values.values.len(),
            Entry::Bool(values) => values.values.len(),
            Entry::Segdes(segments) => segments.values.lengths.len(),
            Entry::Pair(_) => 1,
            Entry::Device(_) | Entry::DeviceSegdes(_) => self.size().get() as usize,
        }
    }

    /// Returns the number of elements like [`Entry::len`]. During the trace of a call it may depend on the
    /// sizes of columns.
    pub(crate) fn size(&self) -> Amount {
        match self {
            Entry::Device(vector) => vector.vector.extent.learned().bound().clone(),
            Entry::DeviceSegdes(segdes) => segdes.count().learned().bound().clone(),
            _ => Amount::from(self.len()),
        }
    }

    /// Returns the only int or length if it depends on the sizes of columns.
    pub(crate) fn amount(&self) -> Option<Amount> {
        match self {
            Entry::Int(values) => values.amount.clone(),
            Entry::Segdes(segments) => segments.amount.clone(),
            _ => None,
        }
    }

    /// Returns the only int, as an amount that depends on the sizes of columns or as a constant.
    pub(crate) fn only_int(&self) -> Option<Amount> {
        match self {
            Entry::Int(values) => match (&values.amount, &values.values[..]) {
                (Some(amount), _) => Some(amount.clone()),
                (None, [value]) => Some(Amount::from(*value)),
                (None, _) => None,
            },
            _ => None,
        }
    }

    /// Makes an int that may depend on the sizes of columns.
    pub(crate) fn int_of(meter: &Rc<Meter>, amount: &Amount) -> Option<Entry> {
        let (values, charge) = (vec![amount.value()], meter.charge(8)?);
        let amount = Some(amount.clone()).filter(|amount| !amount.is_known());
        Some(Entry::Int(Rc::new(Charged { values, amount, copy: OnceCell::new(), _charge: charge })))
    }

    /// Makes a descriptor of one segment whose length may depend on the sizes of columns. The length must not
    /// be negative.
    pub(crate) fn segdes_of(meter: &Rc<Meter>, length: &Amount) -> Option<Entry> {
        let (total, charge) = (usize::try_from(length.value()).ok()?, meter.charge(8)?);
        let values = Segments { lengths: vec![total], total };
        let amount = Some(length.clone()).filter(|amount| !amount.is_known());
        Some(Entry::Segdes(Rc::new(Charged { values, amount, copy: OnceCell::new(), _charge: charge })))
    }

    /// Returns ints of the host as characters.
    pub(crate) fn text(&self) -> Option<Arc<[u8]>> {
        match self {
            Entry::Int(codes) => Some(codes.iter().map(|code| *code as u8).collect()),
            Entry::Bytes(text) => Some((***text).clone()),
            _ => None,
        }
    }

    /// Returns a copy of the entry that is not in the list of live vectors.
    pub(crate) fn detached(&self) -> Entry {
        match self {
            Entry::Device(vector) => {
                let (kept, learned) = (OnceCell::new(), OnceCell::new());
                let (ty, value, host) = (vector.ty, vector.value.clone(), vector.host.clone());
                let (each, _charge) = (vector.each.clone(), None);
                let (vector, wide) = (vector.vector.clone(), RefCell::default());
                let vector = DeviceVector { ty, vector, kept, learned, value, each, host, wide, _charge };
                Entry::Device(Rc::new(vector))
            }
            Entry::DeviceSegdes(segdes) => Entry::DeviceSegdes(Rc::new(segdes.detached())),
            other => other.clone(),
        }
    }

    /// Makes an entry; `None` if it exceeds the limit on memory.
    pub(crate) fn ints(meter: &Rc<Meter>, values: Vec<i64>) -> Option<Entry> {
        let charge = meter.charge(values.len().saturating_mul(8))?;
        Some(Entry::Int(Charged::new(values, charge)))
    }

    /// Makes an entry of ints from 0 to 255.
    pub(crate) fn bytes(meter: &Rc<Meter>, values: Arc<[u8]>) -> Option<Entry> {
        let charge = meter.charge(values.len())?;
        Some(Entry::Bytes(Charged::new(values, charge)))
    }

    pub(crate) fn floats(meter: &Rc<Meter>, values: Vec<f64>) -> Option<Entry> {
        let charge = meter.charge(values.len().saturating_mul(8))?;
        Some(Entry::Float(Charged::new(values, charge)))
    }

    pub(crate) fn bools(meter: &Rc<Meter>, values: Vec<bool>) -> Option<Entry> {
        let charge = meter.charge(values.len())?;
        Some(Entry::Bool(Charged::new(values, charge)))
    }

    /// Makes a segment descriptor. Lengths must not be negative.
    pub(crate) fn segdes(meter: &Rc<Meter>, lengths: Vec<usize>) -> Option<Entry> {
        let total = lengths.iter().try_fold(0usize, |sum, &length| sum.checked_add(length))?;
        let charge = meter.charge(lengths.len().saturating_mul(8))?;
        Some(Entry::Segdes(Charged::new(Segments { lengths, total }, charge)))
    }
}

/// A vector of a device on the stack of the machine.
pub(crate) struct DeviceVector {
    pub(crate) ty: Type,
    pub(crate) vector: Vector,
    /// The elements that a pack by these flags keeps, if there was one.
    pub(crate) kept: OnceCell<KeptElements>,
    /// The vector with its number of elements known to the host.
    pub(crate) learned: OnceCell<Vector>,
    /// The only element, an int or a bool, if the host has learned it.
    pub(crate) value: OnceCell<i64>,
    /// The value of all elements, if the host knows it.
    pub(crate) each: Option<Entry>,
    /// The elements on the host, if they were read.
    pub(crate) host: OnceCell<Entry>,
    /// The elements as ints, if they are bytes and were needed as ints, with the bytes.
    pub(crate) wide: RefCell<Option<(Node, Vector)>>,
    pub(crate) _charge: Option<VectorCharge>,
}

/// Elements that a pack keeps.
#[derive(Clone)]
pub(crate) struct KeptElements {
    /// Their number.
    pub(crate) length: Length,
    /// Their indices, followed by arbitrary elements, if indices were packed. Other vectors are gathered at
    /// these indices, so all packs by the same flags are one pass.
    pub(crate) places: Option<Node>,
}

impl std::fmt::Debug for DeviceVector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.ty.name(), self.vector.node)
    }
}

/// Copy of a host vector on a device.
#[derive(Debug)]
pub(crate) enum DeviceCopy {
    Vector(Node),
    Segdes(Rc<DeviceSegdes>),
}

impl DeviceVector {
    /// Tells whether it is a single int or bool that the host has not learned.
    pub(crate) fn is_number(&self) -> bool {
        self.value.get().is_none() && self.ty != Type::Float && self.vector.extent.is_host(1) && self.vector.is_uniform()
    }

    /// Returns the vector with the current knowledge of the host.
    pub(crate) fn current(&self) -> Run<Vector> {
        if let Some(learned) = self.learned.get() {
            return Ok(learned.clone());
        }
        let vector = self.vector.learned()?;
        if matches!(vector.extent, Extent::Host(_)) {
            let _ = self.learned.set(vector.clone());
        }
        Ok(vector)
    }
}

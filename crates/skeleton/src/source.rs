//! Functions that are fused into a pattern: sources read inputs at a position, sinks take results and write outputs.

use crate::{Error, Result};
use broadloom_scalar::{AccessorKind, Block, Body, Function, Op, Statement, Type};

/// A fused producer: a [`Function`] from a position to one or several values.
///
/// Its parameters are the position, one integer for each axis of the domain that the pattern works on, all of one type of 32 or 64 bits;
/// then values that the pattern gives with the position ([`Source::with_given`]), then any scalars. Its accessors are inputs: buffers that are read at an index that counts elements from the start of the buffer. A
/// position of 32 bits says that all counts are less than 2³¹.
///
/// An accessor that is an output is a *trap*: memory that the function writes under a condition, such as a word that says that a divisor is 0. It stands
/// among the inputs of a pattern. A position may be computed several times, by several threads, so all writes to a place write the same value.
///
/// ```
/// use broadloom_scalar::{AccessorKind, Builder, Type};
/// use broadloom_skeleton::Source;
/// // i ↦ scale · x[i]
/// let f = Builder::function("scaled");
/// let (i, scale) = (f.parameter("i", Type::I32), f.parameter("scale", Type::F32));
/// let x = f.accessor("x", AccessorKind::Input, Type::F32, 1);
/// let scaled = f.finish_function(&[f.mul(f.read(x, &[i.into()]), scale)]).unwrap();
/// let source = Source::new(scaled, 1).unwrap();
/// assert_eq!(source.results(), [Type::F32]);
/// assert_eq!((source.inputs(), source.scalars()), (vec![Type::F32], vec![Type::F32]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    function: Function,
    axes: usize,
    /// Number of values that come with a position.
    given: usize,
}

/// A position of 32 or 64 bits; `I32` where there is none.
pub(crate) fn index_type(function: &Function, axes: usize) -> Result<Type> {
    let bad = |reason: String| Error::Function { function: function.name().to_owned(), reason };
    let Some(position) = function.parameters().get(..axes) else {
        return Err(bad(format!("a position has {axes} indices, and there are {} parameters", function.parameters().len())));
    };
    let ty = position.first().map_or(Type::I32, |first| first.ty);
    if position.iter().any(|parameter| parameter.ty != ty) || !matches!(ty, Type::I32 | Type::U32 | Type::I64 | Type::U64) {
        return Err(bad("the indices of a position are all `i32`, `u32`, `i64` or `u64`".to_owned()));
    }
    Ok(ty)
}

fn check_accessors(function: &Function, allowed: &[AccessorKind]) -> Result<()> {
    for accessor in function.accessors() {
        if !allowed.contains(&accessor.kind) || accessor.rank != 1 {
            let reason = format!("`{}` is not read or written at one index; bind it to a layout", accessor.name);
            return Err(Error::Function { function: function.name().to_owned(), reason });
        }
    }
    Ok(())
}

pub(crate) fn check_scalars(function: &Function, from: usize) -> Result<()> {
    match function.parameters()[from..].iter().find(|parameter| !parameter.ty.is_scalar()) {
        Some(parameter) => Err(Error::Function {
            function: function.name().to_owned(),
            reason: format!("the scalar `{}` has several lanes", parameter.name),
        }),
        None => Ok(()),
    }
}

impl Source {
    /// A function of a position with so many indices.
    pub fn new(function: Function, axes: usize) -> Result<Source> {
        index_type(&function, axes)?;
        check_accessors(&function, &[AccessorKind::Input, AccessorKind::Output])?;
        check_scalars(&function, axes)?;
        if function.results().is_empty() && !function.accessors().iter().any(|accessor| accessor.kind == AccessorKind::Output) {
            return Err(Error::Function { function: function.name().to_owned(), reason: "it has no results".to_owned() });
        }
        Ok(Source { function, axes, given: 0 })
    }

    /// The source with so many values that the pattern gives with each position. Few patterns give any.
    pub fn with_given(self, given: usize) -> Result<Source> {
        if self.function.parameters().len() < self.axes + given {
            let reason = format!("it takes {} parameters, fewer than positions and values", self.function.parameters().len());
            return Err(Error::Function { function: self.function.name().to_owned(), reason });
        }
        Ok(Source { given, ..self })
    }

    /// The types of the values that come with a position.
    pub fn given(&self) -> Vec<Type> {
        self.function.parameters()[self.axes..][..self.given].iter().map(|parameter| parameter.ty).collect()
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Returns the number of indices of a position.
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// The type of an index.
    pub fn index(&self) -> Type {
        self.function.parameters().first().filter(|_| self.axes > 0).map_or(Type::I32, |parameter| parameter.ty)
    }

    /// The types of the elements of its inputs, traps among them.
    pub fn inputs(&self) -> Vec<Type> {
        self.function.accessors().iter().map(|accessor| accessor.ty).collect()
    }

    /// The types of its scalars.
    pub fn scalars(&self) -> Vec<Type> {
        self.function.parameters()[self.axes + self.given..].iter().map(|parameter| parameter.ty).collect()
    }

    /// The types of its results.
    pub fn results(&self) -> Vec<Type> {
        self.function.result_types()
    }

    /// Which inputs are read at the last index of the position itself whatever else happens: neighbouring positions read neighbouring elements, and
    /// all of them are there. What is read under a condition may not be.
    pub(crate) fn contiguous(&self) -> Vec<bool> {
        if self.axes != 1 {
            return vec![false; self.function.accessors().len()];
        }
        self.read_in(self.function.body().block(Body::ENTRY))
    }

    /// The inputs that a block reads at the position itself each time it runs.
    fn read_in(&self, block: &Block) -> Vec<bool> {
        let body = self.function.body();
        let mut found = vec![false; self.function.accessors().len()];
        for statement in &block.statements {
            if let Statement::Define(id) = statement
                && let Op::Read(accessor, position) = &body.node(*id).op
                && let [index] = position[..]
                && matches!(body.node(index).op, Op::Parameter(0))
            {
                found[accessor.index()] = true;
            }
            if let Statement::If { then, otherwise, .. } = statement {
                let (then, otherwise) = (self.read_in(body.block(*then)), self.read_in(body.block(*otherwise)));
                let both = then.into_iter().zip(otherwise).map(|(a, b)| a && b);
                found.iter_mut().zip(both).for_each(|(found, both)| *found |= both);
            }
        }
        found
    }
}

impl Source {
    /// Returns the number of neighbours on a line that accesses of 16 bytes read, four at least; `None` where inputs are not read at the position itself.
    pub(crate) fn row_width(&self) -> Option<usize> {
        let inputs = self.inputs();
        let moved: Vec<&Type> = inputs.iter().zip(self.contiguous()).filter(|(_, read)| *read).map(|(ty, _)| ty).collect();
        let widest = moved.iter().map(|ty| ty.bytes()).max()?;
        moved.iter().all(|ty| ty.is_scalar()).then_some((16 / widest).max(4) as usize)
    }
}

/// The use of results: a [`Function`] of a position and the values there, or a plain store.
///
/// Its parameters are the position, as for a [`Source`], the values, then any scalars. Its results are stored, each in an output of its own, at
/// the position, outputs being laid out row by row. It may read inputs, and write outputs at indices that it computes; these
/// outputs stand behind those of its results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sink(Option<Written>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Written {
    pub(crate) function: Function,
    pub(crate) axes: usize,
    pub(crate) values: usize,
}

impl Sink {
    /// Each value goes to an output of its own.
    pub const STORE: Sink = Sink(None);

    /// A function of a position with so many indices and of so many values.
    pub fn new(function: Function, axes: usize, values: usize) -> Result<Sink> {
        index_type(&function, axes)?;
        check_accessors(&function, &[AccessorKind::Input, AccessorKind::Output])?;
        if function.parameters().len() < axes + values {
            let reason = format!("it takes {} parameters, not {axes} indices and {values} values", function.parameters().len());
            return Err(Error::Function { function: function.name().to_owned(), reason });
        }
        check_scalars(&function, axes + values)?;
        Ok(Sink(Some(Written { function, axes, values })))
    }

    /// The function, if there is one.
    pub fn function(&self) -> Option<&Function> {
        self.0.as_ref().map(|written| &written.function)
    }

    pub(crate) fn written(&self) -> Option<&Written> {
        self.0.as_ref()
    }

    /// Checks that it takes values of these types over a domain with so many axes.
    pub fn check(&self, pattern: &'static str, axes: usize, values: &[Type]) -> Result<()> {
        let Some(written) = &self.0 else { return Ok(()) };
        let takes: Vec<Type> =
            written.function.parameters()[written.axes..written.axes + written.values].iter().map(|p| p.ty).collect();
        if written.axes == axes && takes == values {
            return Ok(());
        }
        let show = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
        let reason = format!(
            "`{}` takes positions with {} indices and values ({}), and is given {axes} and ({})",
            written.function.name(),
            written.axes,
            show(&takes),
            show(values)
        );
        Err(Error::Pattern { pattern, reason })
    }
}

impl Written {
    /// The type of an index.
    pub(crate) fn index(&self) -> Type {
        self.function.parameters().first().filter(|_| self.axes > 0).map_or(Type::I32, |parameter| parameter.ty)
    }
}

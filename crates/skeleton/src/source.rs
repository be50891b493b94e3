//! Functions that are fused into a pattern. Sources read inputs at a position; sinks take results and write
//! outputs.

use crate::{Error, Result};
use broadloom_scalar::{AccessorKind, Block, Body, Function, Op, Statement, Type};

/// A fused producer: a [`Function`] from a position to one or several values.
///
/// The parameters start with the position: one integer for each axis of the domain, all of one type of 32 or
/// 64 bits. Values that the pattern passes with the position follow ([`Source::with_given`]), then any
/// scalars. The accessors are inputs: buffers that are read at an index that counts elements from the start
/// of the buffer. A 32-bit position requires that all counts are less than 2³¹.
///
/// An output accessor is a *trap*: memory that the function writes under a condition, such as a flag for a
/// division by zero. A trap is listed among the inputs of a pattern. A position may be computed several
/// times, by several threads. All writes to a place must therefore write the same value.
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
    /// Number of values that the pattern passes with a position.
    given: usize,
}

/// Returns the type of the indices of a position, 32 or 64 bits wide. Returns `I32` if a position has no
/// indices.
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
    /// Makes a source from a function of a position with `axes` indices.
    pub fn new(function: Function, axes: usize) -> Result<Source> {
        index_type(&function, axes)?;
        check_accessors(&function, &[AccessorKind::Input, AccessorKind::Output])?;
        check_scalars(&function, axes)?;
        if function.results().is_empty() && !function.accessors().iter().any(|accessor| accessor.kind == AccessorKind::Output) {
            return Err(Error::Function { function: function.name().to_owned(), reason: "it has no results".to_owned() });
        }
        Ok(Source { function, axes, given: 0 })
    }

    /// Returns the source with `given` values that the pattern passes with each position. Few patterns pass
    /// any.
    pub fn with_given(self, given: usize) -> Result<Source> {
        if self.function.parameters().len() < self.axes + given {
            let reason = format!("it takes {} parameters, fewer than positions and values", self.function.parameters().len());
            return Err(Error::Function { function: self.function.name().to_owned(), reason });
        }
        Ok(Source { given, ..self })
    }

    /// Returns the types of the values that the pattern passes with a position.
    pub fn given(&self) -> Vec<Type> {
        self.function.parameters()[self.axes..][..self.given].iter().map(|parameter| parameter.ty).collect()
    }

    /// Returns the code that gives the values of a position.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Returns the number of indices of a position.
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// Returns the type of an index.
    pub fn index(&self) -> Type {
        self.function.parameters().first().filter(|_| self.axes > 0).map_or(Type::I32, |parameter| parameter.ty)
    }

    /// Returns the element types of its inputs, including traps.
    pub fn inputs(&self) -> Vec<Type> {
        self.function.accessors().iter().map(|accessor| accessor.ty).collect()
    }

    /// Returns the types of its scalars.
    pub fn scalars(&self) -> Vec<Type> {
        self.function.parameters()[self.axes + self.given..].iter().map(|parameter| parameter.ty).collect()
    }

    /// Returns the types of its results.
    pub fn results(&self) -> Vec<Type> {
        self.function.result_types()
    }

    /// Returns for each input: true if the position has one index, and the input is read unconditionally at
    /// the position itself. Neighbouring positions then read neighbouring elements, and all of these elements
    /// exist. An element that is read under a condition may not exist.
    pub(crate) fn contiguous(&self) -> Vec<bool> {
        if self.axes != 1 {
            return vec![false; self.function.accessors().len()];
        }
        self.read_in(self.function.body().block(Body::ENTRY))
    }

    /// Returns the inputs that a block reads at the position itself each time it runs.
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
    /// Returns the number of neighbours on a line that 16-byte accesses read, at least four. Returns `None`
    /// if no input is read at the position itself, or if one that is has several lanes.
    pub(crate) fn row_width(&self) -> Option<usize> {
        let inputs = self.inputs();
        let moved: Vec<&Type> = inputs.iter().zip(self.contiguous()).filter(|(_, read)| *read).map(|(ty, _)| ty).collect();
        let widest = moved.iter().map(|ty| ty.bytes()).max()?;
        moved.iter().all(|ty| ty.is_scalar()).then_some((16 / widest).max(4) as usize)
    }
}

/// The use of results: a [`Function`] of a position and the values there, or a plain store.
///
/// The parameters are the position, as for a [`Source`], then the values, then any scalars. Each result is
/// stored at the position in an output of its own; outputs are laid out in row-major order. The function may
/// read inputs, and may write outputs at computed indices. These outputs follow those of the results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sink(Option<SinkFunction>);

/// Function of a sink: it takes the indices of the axes, then the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SinkFunction {
    pub(crate) function: Function,
    pub(crate) axes: usize,
    pub(crate) values: usize,
}

impl Sink {
    /// Stores each value in an output of its own.
    pub const STORE: Sink = Sink(None);

    /// Makes a sink from a function of a position with `axes` indices and of `values` values.
    pub fn new(function: Function, axes: usize, values: usize) -> Result<Sink> {
        index_type(&function, axes)?;
        check_accessors(&function, &[AccessorKind::Input, AccessorKind::Output])?;
        if function.parameters().len() < axes + values {
            let reason = format!("it takes {} parameters, not {axes} indices and {values} values", function.parameters().len());
            return Err(Error::Function { function: function.name().to_owned(), reason });
        }
        check_scalars(&function, axes + values)?;
        Ok(Sink(Some(SinkFunction { function, axes, values })))
    }

    /// Returns the function, if there is one.
    pub fn function(&self) -> Option<&Function> {
        self.0.as_ref().map(|written| &written.function)
    }

    pub(crate) fn written(&self) -> Option<&SinkFunction> {
        self.0.as_ref()
    }

    /// Checks that the sink takes values of these types over a domain with `axes` axes.
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

impl SinkFunction {
    /// Returns the type of an index.
    pub(crate) fn index(&self) -> Type {
        self.function.parameters().first().filter(|_| self.axes > 0).map_or(Type::I32, |parameter| parameter.ty)
    }
}

//! Thin layer over LLVM's C interface that treats scalars and vectors alike: an operation works on either.
//!
//! Invariant: every [`Val`], [`Ty`] and [`Label`] belongs to the context of the [`Ir`] that created it, is
//! used only with that one, and does not outlive it. The compiler keeps all of them within one call. LLVM
//! does not check its arguments, so the caller is responsible for types. The module is verified before it is
//! used.

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::{
    LLVMAtomicOrdering, LLVMAtomicRMWBinOp, LLVMIntPredicate, LLVMLinkage, LLVMOpcode, LLVMRealPredicate, LLVMTypeKind,
};
use std::cell::Cell;
use std::ffi::{CStr, CString};

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Val(LLVMValueRef);

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ty(LLVMTypeRef);

/// A block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Label(LLVMBasicBlockRef);

pub(crate) use inkwell::llvm_sys::LLVMAtomicOrdering as Ordering;
pub(crate) use inkwell::llvm_sys::LLVMAtomicRMWBinOp as Rmw;
pub(crate) use inkwell::llvm_sys::LLVMIntPredicate as IntPred;
pub(crate) use inkwell::llvm_sys::LLVMRealPredicate as RealPred;

/// Module under construction, with the insertion point of the next instruction.
pub(crate) struct Ir {
    context: LLVMContextRef,
    module: LLVMModuleRef,
    builder: LLVMBuilderRef,
    function: Cell<LLVMValueRef>,
    /// True if the function has operations that exist only for registers of 64 bytes.
    is_wide: Cell<bool>,
    /// `!{}`, which marks loads of memory that never changes.
    empty_node: LLVMValueRef,
    invariant_kind: u32,
}

impl Drop for Ir {
    fn drop(&mut self) {
        // SAFETY: the builder was made by `new` and nothing uses it any more; module and context belong to
        // the caller.
        unsafe { LLVMDisposeBuilder(self.builder) };
    }
}

const NO_NAME: &CStr = c"";

macro_rules! binary {
    ($($name:ident $call:ident;)*) => {
        $(pub(crate) fn $name(&self, a: Val, b: Val) -> Val {
            // SAFETY: both values belong to this context.
            Val(unsafe { $call(self.builder, a.0, b.0, NO_NAME.as_ptr()) })
        })*
    };
}

macro_rules! casts {
    ($($name:ident $opcode:ident;)*) => {
        $(pub(crate) fn $name(&self, a: Val, to: Ty) -> Val {
            self.cast(LLVMOpcode::$opcode, a, to)
        })*
    };
}

impl Ir {
    /// Creates a builder for a module.
    pub(crate) fn new(context: LLVMContextRef, module: LLVMModuleRef) -> Ir {
        // SAFETY: context and module are alive as long as the caller keeps them, which is longer than this
        // value.
        unsafe {
            let builder = LLVMCreateBuilderInContext(context);
            let node = LLVMMDNodeInContext2(context, std::ptr::null_mut(), 0);
            let empty_node = LLVMMetadataAsValue(context, node);
            let kind = "invariant.load";
            let invariant_kind = LLVMGetMDKindIDInContext(context, kind.as_ptr().cast(), kind.len() as u32);
            let function = Cell::new(std::ptr::null_mut());
            Ir { context, module, builder, function, is_wide: Cell::new(false), empty_node, invariant_kind }
        }
    }

    /// Declares a function that takes `pointers` pointers and returns nothing.
    pub(crate) fn declare(&self, name: &str, pointers: u32, exported: bool) -> Val {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the name is copied, the types belong to this context.
        unsafe {
            let pointer = LLVMPointerTypeInContext(self.context, 0);
            let mut types = vec![pointer; pointers as usize];
            let ty = LLVMFunctionType(LLVMVoidTypeInContext(self.context), types.as_mut_ptr(), pointers, 0);
            let function = LLVMAddFunction(self.module, name.as_ptr(), ty);
            if !exported {
                LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage);
            }
            Val(function)
        }
    }

    /// Declares a private function that is called in lockstep: three pointers, the lanes, the frame and the
    /// first lane.
    pub(crate) fn declare_in_step(&self, name: &str) -> Val {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the name is copied, the types belong to this context.
        unsafe {
            let pointer = LLVMPointerTypeInContext(self.context, 0);
            let (i32, i64) = (LLVMInt32TypeInContext(self.context), LLVMInt64TypeInContext(self.context));
            let mut types = [pointer, pointer, pointer, i32, i64, i32];
            let ty = LLVMFunctionType(LLVMVoidTypeInContext(self.context), types.as_mut_ptr(), types.len() as u32, 0);
            let function = LLVMAddFunction(self.module, name.as_ptr(), ty);
            LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage);
            Val(function)
        }
    }

    /// Sets the function that following instructions belong to.
    pub(crate) fn begin(&self, function: Val) {
        self.function.set(function.0);
        self.is_wide.set(false);
    }

    /// Adds an attribute to the function: `"target-cpu"="…"`, or one without a value.
    pub(crate) fn attribute(&self, name: &str, value: &str) {
        // SAFETY: the strings are copied; the function is alive.
        unsafe {
            let (n, v) = (name.as_bytes(), value.as_bytes());
            let attribute =
                LLVMCreateStringAttribute(self.context, n.as_ptr().cast(), n.len() as u32, v.as_ptr().cast(), v.len() as u32);
            LLVMAddAttributeAtIndex(self.function.get(), inkwell::llvm_sys::LLVMAttributeFunctionIndex, attribute);
        }
    }

    /// Makes the function use registers of 32 bytes, if nothing in it needs those of 64. A core with data in
    /// the upper halves of wide registers runs all code slower.
    pub(crate) fn leave_wide_registers(&self) {
        if !self.is_wide.get() {
            self.attribute("prefer-vector-width", "256");
            self.attribute("min-legal-vector-width", "0");
        }
    }

    /// Adds an attribute that LLVM knows to the function, such as `nounwind`.
    pub(crate) fn known_attribute(&self, name: &str) {
        // SAFETY: the name is copied; the function is alive.
        unsafe {
            let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let attribute = LLVMCreateEnumAttribute(self.context, kind, 0);
            LLVMAddAttributeAtIndex(self.function.get(), inkwell::llvm_sys::LLVMAttributeFunctionIndex, attribute);
        }
    }

    /// Returns an argument of the function.
    pub(crate) fn argument(&self, index: u32) -> Val {
        // SAFETY: the function was declared with more arguments.
        Val(unsafe { LLVMGetParam(self.function.get(), index) })
    }

    // Types.

    pub(crate) fn int(&self, bits: u32) -> Ty {
        // SAFETY: the context is alive.
        Ty(unsafe { LLVMIntTypeInContext(self.context, bits) })
    }

    pub(crate) fn half(&self) -> Ty {
        // SAFETY: the context is alive.
        Ty(unsafe { LLVMHalfTypeInContext(self.context) })
    }

    pub(crate) fn float(&self) -> Ty {
        // SAFETY: the context is alive.
        Ty(unsafe { LLVMFloatTypeInContext(self.context) })
    }

    pub(crate) fn double(&self) -> Ty {
        // SAFETY: the context is alive.
        Ty(unsafe { LLVMDoubleTypeInContext(self.context) })
    }

    pub(crate) fn pointer(&self) -> Ty {
        // SAFETY: the context is alive.
        Ty(unsafe { LLVMPointerTypeInContext(self.context, 0) })
    }

    pub(crate) fn void(&self) -> Ty {
        // SAFETY: the context is alive.
        Ty(unsafe { LLVMVoidTypeInContext(self.context) })
    }

    pub(crate) fn vector(&self, element: Ty, lanes: u32) -> Ty {
        // SAFETY: the element type belongs to this context.
        Ty(unsafe { LLVMVectorType(element.0, lanes) })
    }

    /// Returns a vector of the type, or the type itself if `lanes` is `None`.
    pub(crate) fn lanes_of(&self, element: Ty, lanes: Option<u32>) -> Ty {
        lanes.map_or(element, |lanes| self.vector(element, lanes))
    }

    pub(crate) fn type_of(&self, value: Val) -> Ty {
        // SAFETY: the value is alive.
        Ty(unsafe { LLVMTypeOf(value.0) })
    }

    /// Returns the number of lanes of a value; `None` for a scalar.
    pub(crate) fn lanes(&self, value: Val) -> Option<u32> {
        self.lanes_in(self.type_of(value))
    }

    pub(crate) fn lanes_in(&self, ty: Ty) -> Option<u32> {
        // SAFETY: the type is alive, and the size is read only from vectors.
        unsafe { (LLVMGetTypeKind(ty.0) == LLVMTypeKind::LLVMVectorTypeKind).then(|| LLVMGetVectorSize(ty.0)) }
    }

    /// Returns the type of a lane.
    pub(crate) fn element(&self, ty: Ty) -> Ty {
        match self.lanes_in(ty) {
            // SAFETY: the type is a vector.
            Some(_) => Ty(unsafe { LLVMGetElementType(ty.0) }),
            None => ty,
        }
    }

    /// Returns a type with as many lanes as `shape`.
    pub(crate) fn like(&self, shape: Ty, element: Ty) -> Ty {
        self.lanes_of(element, self.lanes_in(shape))
    }

    /// Returns the bits of a lane; predicates have one.
    pub(crate) fn bits(&self, ty: Ty) -> u32 {
        let element = self.element(ty);
        // SAFETY: the type is alive.
        unsafe {
            match LLVMGetTypeKind(element.0) {
                LLVMTypeKind::LLVMIntegerTypeKind => LLVMGetIntTypeWidth(element.0),
                LLVMTypeKind::LLVMHalfTypeKind => 16,
                LLVMTypeKind::LLVMFloatTypeKind => 32,
                _ => 64,
            }
        }
    }

    // Constants.

    /// Returns the integer constant in every lane of the type.
    pub(crate) fn constant(&self, ty: Ty, value: u64) -> Val {
        let element = self.element(ty);
        // SAFETY: the element is an integer type of this context.
        let scalar = Val(unsafe { LLVMConstInt(element.0, value, 0) });
        self.repeat(scalar, ty)
    }

    /// Returns the floating-point constant in every lane of the type.
    pub(crate) fn real(&self, ty: Ty, value: f64) -> Val {
        let element = self.element(ty);
        // SAFETY: the element is a floating-point type of this context.
        let scalar = Val(unsafe { LLVMConstReal(element.0, value) });
        self.repeat(scalar, ty)
    }

    /// Returns a constant in all lanes of a type.
    fn repeat(&self, scalar: Val, ty: Ty) -> Val {
        match self.lanes_in(ty) {
            None => scalar,
            Some(lanes) => self.constants(&vec![scalar; lanes as usize]),
        }
    }

    /// Returns a vector of constants.
    pub(crate) fn constants(&self, values: &[Val]) -> Val {
        let mut refs: Vec<LLVMValueRef> = values.iter().map(|value| value.0).collect();
        // SAFETY: the values are constants of one type of this context.
        Val(unsafe { LLVMConstVector(refs.as_mut_ptr(), refs.len() as u32) })
    }

    /// Returns `0, step, 2·step, …` in integers of a type.
    pub(crate) fn steps(&self, element: Ty, lanes: u32, step: u64) -> Val {
        let values: Vec<Val> = (0..u64::from(lanes)).map(|lane| self.constant(element, lane.wrapping_mul(step))).collect();
        self.constants(&values)
    }

    pub(crate) fn zero(&self, ty: Ty) -> Val {
        // SAFETY: the type is alive.
        Val(unsafe { LLVMConstNull(ty.0) })
    }

    pub(crate) fn poison(&self, ty: Ty) -> Val {
        // SAFETY: the type is alive.
        Val(unsafe { LLVMGetPoison(ty.0) })
    }

    /// Returns the value of an integer constant of at most 64 bits.
    pub(crate) fn as_constant(&self, value: Val) -> Option<u64> {
        // SAFETY: the value is alive; the number is read only from integer constants.
        unsafe {
            let constant = LLVMIsAConstantInt(value.0);
            (!constant.is_null() && self.bits(self.type_of(value)) <= 64).then(|| LLVMConstIntGetZExtValue(constant))
        }
    }

    /// Returns whether a value is a constant.
    pub(crate) fn is_constant(&self, value: Val) -> bool {
        // SAFETY: the value is alive.
        unsafe { LLVMIsConstant(value.0) != 0 }
    }

    // Arithmetic.

    binary! {
        add LLVMBuildAdd;
        sub LLVMBuildSub;
        mul LLVMBuildMul;
        udiv LLVMBuildUDiv;
        sdiv LLVMBuildSDiv;
        urem LLVMBuildURem;
        srem LLVMBuildSRem;
        and LLVMBuildAnd;
        or LLVMBuildOr;
        xor LLVMBuildXor;
        shl LLVMBuildShl;
        lshr LLVMBuildLShr;
        ashr LLVMBuildAShr;
        fadd LLVMBuildFAdd;
        fsub LLVMBuildFSub;
        fmul LLVMBuildFMul;
        fdiv LLVMBuildFDiv;
    }

    casts! {
        trunc LLVMTrunc;
        zext LLVMZExt;
        sext LLVMSExt;
        fptrunc LLVMFPTrunc;
        fpext LLVMFPExt;
        sitofp LLVMSIToFP;
        uitofp LLVMUIToFP;
        fptosi LLVMFPToSI;
        fptoui LLVMFPToUI;
        inttoptr LLVMIntToPtr;
        ptrtoint LLVMPtrToInt;
    }

    fn cast(&self, opcode: LLVMOpcode, a: Val, to: Ty) -> Val {
        let to = self.like(self.type_of(a), self.element(to));
        // SAFETY: value and type belong to this context.
        Val(unsafe { LLVMBuildCast(self.builder, opcode, a.0, to.0, NO_NAME.as_ptr()) })
    }

    /// Reinterprets the bits of each lane as another type.
    pub(crate) fn bitcast(&self, a: Val, to: Ty) -> Val {
        let to = self.like(self.type_of(a), self.element(to));
        self.bitcast_whole(a, to)
    }

    /// Reinterprets the bits of a whole value as another type; the number of lanes may change.
    pub(crate) fn bitcast_whole(&self, a: Val, to: Ty) -> Val {
        if self.type_of(a) == to {
            return a;
        }
        // SAFETY: value and type belong to this context.
        Val(unsafe { LLVMBuildBitCast(self.builder, a.0, to.0, NO_NAME.as_ptr()) })
    }

    /// Truncates or extends an integer to the width of another type, with or without its sign.
    pub(crate) fn resize(&self, a: Val, to: Ty, signed: bool) -> Val {
        let (from, wanted) = (self.bits(self.type_of(a)), self.bits(to));
        match from.cmp(&wanted) {
            std::cmp::Ordering::Equal => a,
            std::cmp::Ordering::Greater => self.trunc(a, to),
            std::cmp::Ordering::Less if signed => self.sext(a, to),
            std::cmp::Ordering::Less => self.zext(a, to),
        }
    }

    pub(crate) fn not(&self, a: Val) -> Val {
        // SAFETY: the value belongs to this context.
        Val(unsafe { LLVMBuildNot(self.builder, a.0, NO_NAME.as_ptr()) })
    }

    pub(crate) fn neg(&self, a: Val) -> Val {
        // SAFETY: the value belongs to this context.
        Val(unsafe { LLVMBuildNeg(self.builder, a.0, NO_NAME.as_ptr()) })
    }

    pub(crate) fn fneg(&self, a: Val) -> Val {
        // SAFETY: the value belongs to this context.
        Val(unsafe { LLVMBuildFNeg(self.builder, a.0, NO_NAME.as_ptr()) })
    }

    pub(crate) fn icmp(&self, predicate: LLVMIntPredicate, a: Val, b: Val) -> Val {
        // SAFETY: both values belong to this context.
        Val(unsafe { LLVMBuildICmp(self.builder, predicate, a.0, b.0, NO_NAME.as_ptr()) })
    }

    pub(crate) fn fcmp(&self, predicate: LLVMRealPredicate, a: Val, b: Val) -> Val {
        match self.order_of_halves(predicate, a) {
            Some((signed, unordered)) => {
                let either = self.fcmp(LLVMRealPredicate::LLVMRealUNO, a, b);
                let holds = self.icmp(signed, self.half_as_integer(a), self.half_as_integer(b));
                if unordered { self.or(holds, either) } else { self.and(holds, self.not(either)) }
            }
            // SAFETY: both values belong to this context.
            None => Val(unsafe { LLVMBuildFCmp(self.builder, predicate, a.0, b.0, NO_NAME.as_ptr()) }),
        }
    }

    /// Returns the integer comparison for ordering halves, and whether NaNs satisfy it. Halves are compared
    /// as integers because of a bug in LLVM 19: when it swaps the operands of a masked `vcmpph` to fold a
    /// load from the stack, it does not swap the predicate.
    fn order_of_halves(&self, predicate: LLVMRealPredicate, a: Val) -> Option<(LLVMIntPredicate, bool)> {
        use LLVMIntPredicate::{LLVMIntSGE, LLVMIntSGT, LLVMIntSLE, LLVMIntSLT};
        use LLVMRealPredicate::*;
        if self.element(self.type_of(a)) != self.half() {
            return None;
        }
        match predicate {
            LLVMRealOLT => Some((LLVMIntSLT, false)),
            LLVMRealOLE => Some((LLVMIntSLE, false)),
            LLVMRealOGT => Some((LLVMIntSGT, false)),
            LLVMRealOGE => Some((LLVMIntSGE, false)),
            LLVMRealULT => Some((LLVMIntSLT, true)),
            LLVMRealULE => Some((LLVMIntSLE, true)),
            LLVMRealUGT => Some((LLVMIntSGT, true)),
            LLVMRealUGE => Some((LLVMIntSGE, true)),
            LLVMRealPredicateFalse | LLVMRealPredicateTrue | LLVMRealORD | LLVMRealUNO => None,
            LLVMRealOEQ | LLVMRealONE | LLVMRealUEQ | LLVMRealUNE => None,
        }
    }

    /// Returns an integer that has the order of a half that is not NaN; both zeros are equal.
    fn half_as_integer(&self, value: Val) -> Val {
        let bits = self.bitcast(value, self.int(16));
        let ty = self.type_of(bits);
        let zero = self.icmp(LLVMIntPredicate::LLVMIntEQ, bits, self.constant(ty, 0x8000));
        let bits = self.select(zero, self.constant(ty, 0), bits);
        let sign = self.ashr(bits, self.constant(ty, 15));
        self.xor(bits, self.lshr(sign, self.constant(ty, 1)))
    }

    pub(crate) fn select(&self, condition: Val, a: Val, b: Val) -> Val {
        // SAFETY: all values belong to this context.
        Val(unsafe { LLVMBuildSelect(self.builder, condition.0, a.0, b.0, NO_NAME.as_ptr()) })
    }

    /// Calls an intrinsic by name, overloaded on some types.
    pub(crate) fn intrinsic(&self, name: &str, overloads: &[Ty], arguments: &[Val]) -> Val {
        if name.starts_with("llvm.x86.avx512") {
            self.is_wide.set(true);
        }
        let mut types: Vec<LLVMTypeRef> = overloads.iter().map(|ty| ty.0).collect();
        let mut arguments: Vec<LLVMValueRef> = arguments.iter().map(|value| value.0).collect();
        // SAFETY: the intrinsic exists in LLVM 19 (names are constants of this crate, tested), types and
        // values belong to this context.
        unsafe {
            let id = LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            let function = LLVMGetIntrinsicDeclaration(self.module, id, types.as_mut_ptr(), types.len());
            let ty = LLVMGlobalGetValueType(function);
            Val(LLVMBuildCall2(self.builder, ty, function, arguments.as_mut_ptr(), arguments.len() as u32, NO_NAME.as_ptr()))
        }
    }

    /// Calls a pointer to a C function.
    pub(crate) fn call(&self, function: Val, result: Ty, arguments: &[Val]) -> Val {
        let mut types: Vec<LLVMTypeRef> = arguments.iter().map(|value| self.type_of(*value).0).collect();
        let mut values: Vec<LLVMValueRef> = arguments.iter().map(|value| value.0).collect();
        // SAFETY: the type is made from the arguments' own types; all belong to this context.
        unsafe {
            let ty = LLVMFunctionType(result.0, types.as_mut_ptr(), types.len() as u32, 0);
            Val(LLVMBuildCall2(self.builder, ty, function.0, values.as_mut_ptr(), values.len() as u32, NO_NAME.as_ptr()))
        }
    }

    // Vectors.

    pub(crate) fn extract(&self, vector: Val, index: Val) -> Val {
        // SAFETY: both values belong to this context.
        Val(unsafe { LLVMBuildExtractElement(self.builder, vector.0, index.0, NO_NAME.as_ptr()) })
    }

    pub(crate) fn extract_at(&self, vector: Val, index: u32) -> Val {
        self.extract(vector, self.constant(self.int(32), u64::from(index)))
    }

    pub(crate) fn insert(&self, vector: Val, value: Val, index: Val) -> Val {
        // SAFETY: all values belong to this context.
        Val(unsafe { LLVMBuildInsertElement(self.builder, vector.0, value.0, index.0, NO_NAME.as_ptr()) })
    }

    /// Selects lanes of `a`, followed by those of `b`, by index.
    pub(crate) fn shuffle(&self, a: Val, b: Val, lanes: &[u32]) -> Val {
        let i32 = self.int(32);
        let picks: Vec<Val> = lanes.iter().map(|lane| self.constant(i32, u64::from(*lane))).collect();
        let picks = self.constants(&picks);
        // SAFETY: both vectors have the same type, the picks are constants of 32 bits.
        Val(unsafe { LLVMBuildShuffleVector(self.builder, a.0, b.0, picks.0, NO_NAME.as_ptr()) })
    }

    /// Selects lanes of one vector by index.
    pub(crate) fn pick(&self, a: Val, lanes: &[u32]) -> Val {
        self.shuffle(a, self.poison(self.type_of(a)), lanes)
    }

    /// Broadcasts a scalar to all lanes.
    pub(crate) fn splat(&self, scalar: Val, lanes: u32) -> Val {
        let ty = self.vector(self.type_of(scalar), lanes);
        // SAFETY: the value is alive.
        if unsafe { LLVMIsConstant(scalar.0) } != 0 {
            return self.constants(&vec![scalar; lanes as usize]);
        }
        let one = self.insert(self.poison(ty), scalar, self.constant(self.int(32), 0));
        self.pick(one, &vec![0; lanes as usize])
    }

    // Memory.

    /// Converts an address to a pointer.
    pub(crate) fn as_pointer(&self, address: Val) -> Val {
        self.inttoptr(address, self.pointer())
    }

    /// Returns a named table of constants, which the module contains once.
    pub(crate) fn table(&self, name: &str, values: &[f64]) -> Val {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the name is copied; type and constants belong to this context.
        unsafe {
            let made = LLVMGetNamedGlobal(self.module, name.as_ptr());
            if !made.is_null() {
                return Val(made);
            }
            let double = LLVMDoubleTypeInContext(self.context);
            let mut constants: Vec<LLVMValueRef> = values.iter().map(|value| LLVMConstReal(double, *value)).collect();
            let count = constants.len() as u64;
            let table = LLVMAddGlobal(self.module, LLVMArrayType2(double, count), name.as_ptr());
            LLVMSetInitializer(table, LLVMConstArray2(double, constants.as_mut_ptr(), count));
            LLVMSetGlobalConstant(table, 1);
            LLVMSetLinkage(table, LLVMLinkage::LLVMPrivateLinkage);
            LLVMSetAlignment(table, 64);
            Val(table)
        }
    }

    /// Returns a pointer plus a number of bytes. A vector of offsets gives a vector of pointers.
    pub(crate) fn offset(&self, pointer: Val, bytes: Val) -> Val {
        // SAFETY: pointer and offset belong to this context.
        Val(unsafe {
            let byte = LLVMInt8TypeInContext(self.context);
            LLVMBuildGEP2(self.builder, byte, pointer.0, [bytes.0].as_mut_ptr(), 1, NO_NAME.as_ptr())
        })
    }

    /// Returns a pointer to an element, for each index of a vector.
    pub(crate) fn elements_at(&self, pointer: Val, element: Ty, numbers: Val) -> Val {
        // SAFETY: pointer, type and numbers belong to this context.
        Val(unsafe { LLVMBuildGEP2(self.builder, element.0, pointer.0, [numbers.0].as_mut_ptr(), 1, NO_NAME.as_ptr()) })
    }

    pub(crate) fn offset_by(&self, pointer: Val, bytes: u64) -> Val {
        if bytes == 0 { pointer } else { self.offset(pointer, self.constant(self.int(64), bytes)) }
    }

    pub(crate) fn load(&self, ty: Ty, pointer: Val, align: u32) -> Val {
        // SAFETY: pointer and type belong to this context.
        unsafe {
            let value = LLVMBuildLoad2(self.builder, ty.0, pointer.0, NO_NAME.as_ptr());
            LLVMSetAlignment(value, align);
            Val(value)
        }
    }

    /// Freezes a value: it becomes some fixed number if LLVM could treat it as undefined. Stack memory that
    /// was never written is undefined; a branch on a value read there could otherwise lead anywhere.
    pub(crate) fn freeze(&self, value: Val) -> Val {
        // SAFETY: the value belongs to this context.
        Val(unsafe { LLVMBuildFreeze(self.builder, value.0, NO_NAME.as_ptr()) })
    }

    /// Emits a load that LLVM does not move or merge (volatile).
    pub(crate) fn load_as_is(&self, ty: Ty, pointer: Val, align: u32) -> Val {
        let value = self.load(ty, pointer, align);
        // SAFETY: the value is a load of this context.
        unsafe { LLVMSetVolatile(value.0, 1) };
        value
    }

    /// Emits a load of memory that is not written while the kernel runs.
    pub(crate) fn load_invariant(&self, ty: Ty, pointer: Val, align: u32) -> Val {
        let value = self.load(ty, pointer, align);
        self.mark_invariant(value);
        value
    }

    pub(crate) fn mark_invariant(&self, load: Val) {
        // SAFETY: the value is the load just built, or a call, both instructions.
        unsafe {
            if !LLVMIsAInstruction(load.0).is_null() {
                LLVMSetMetadata(load.0, self.invariant_kind, self.empty_node);
            }
        }
    }

    pub(crate) fn store(&self, value: Val, pointer: Val, align: u32) {
        // SAFETY: both values belong to this context.
        unsafe {
            let store = LLVMBuildStore(self.builder, value.0, pointer.0);
            LLVMSetAlignment(store, align);
        }
    }

    /// Emits a store that LLVM does not move or merge (volatile).
    pub(crate) fn store_as_is(&self, value: Val, pointer: Val, align: u32) {
        // SAFETY: both values belong to this context.
        unsafe {
            let store = LLVMBuildStore(self.builder, value.0, pointer.0);
            LLVMSetAlignment(store, align);
            LLVMSetVolatile(store, 1);
        }
    }

    /// Emits a non-temporal store.
    pub(crate) fn store_around(&self, value: Val, pointer: Val, align: u32) {
        let kind = "nontemporal";
        let one = self.constant(self.int(32), 1);
        // SAFETY: all values belong to this context; the node holds the constant 1 that its kind requires.
        unsafe {
            let store = LLVMBuildStore(self.builder, value.0, pointer.0);
            LLVMSetAlignment(store, align);
            let number = LLVMGetMDKindIDInContext(self.context, kind.as_ptr().cast(), kind.len() as u32);
            let node = LLVMMDNodeInContext2(self.context, [LLVMValueAsMetadata(one.0)].as_mut_ptr(), 1);
            LLVMSetMetadata(store, number, LLVMMetadataAsValue(self.context, node));
        }
    }

    pub(crate) fn atomic(&self, op: LLVMAtomicRMWBinOp, pointer: Val, value: Val, ordering: LLVMAtomicOrdering) -> Val {
        // SAFETY: both values belong to this context; the type is one that LLVM has atomics of.
        Val(unsafe { LLVMBuildAtomicRMW(self.builder, op, pointer.0, value.0, ordering, 0) })
    }

    /// Emits a compare-and-exchange and returns the old value.
    pub(crate) fn compare_exchange(&self, pointer: Val, compare: Val, value: Val) -> Val {
        use LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent as Order;
        // SAFETY: all values belong to this context.
        unsafe {
            let pair = LLVMBuildAtomicCmpXchg(self.builder, pointer.0, compare.0, value.0, Order, Order, 0);
            Val(LLVMBuildExtractValue(self.builder, pair, 0, NO_NAME.as_ptr()))
        }
    }

    /// Prefetches a line for reading into the cache of a level.
    pub(crate) fn prefetch(&self, place: Val, level: u64) {
        let [read, near, data] = [0, 4 - level, 1].map(|number| self.constant(self.int(32), number));
        self.intrinsic("llvm.prefetch", &[self.pointer()], &[place, read, near, data]);
    }

    pub(crate) fn fence(&self) {
        use LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent as Order;
        // SAFETY: the builder stands in a block.
        unsafe { LLVMBuildFence(self.builder, Order, 0, NO_NAME.as_ptr()) };
    }

    /// Keeps LLVM from moving accesses across this point; the host's own order is enough.
    pub(crate) fn compiler_fence(&self) {
        use LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent as Order;
        // SAFETY: the builder stands in a block.
        unsafe { LLVMBuildFence(self.builder, Order, 1, NO_NAME.as_ptr()) };
    }

    /// Allocates memory on the stack, from here until the function ends.
    pub(crate) fn stack_bytes(&self, bytes: Val, align: u32) -> Val {
        // SAFETY: the number is an integer of this context.
        unsafe {
            let byte = LLVMInt8TypeInContext(self.context);
            let slot = LLVMBuildArrayAlloca(self.builder, byte, bytes.0, NO_NAME.as_ptr());
            LLVMSetAlignment(slot, align);
            Val(slot)
        }
    }

    /// Allocates zeroed memory on the stack at the start of the function.
    pub(crate) fn stack_of_zeros(&self, ty: Ty, align: u32) -> Val {
        self.stack_slot(ty, align, true)
    }

    /// Allocates memory on the stack at the start of the function.
    pub(crate) fn stack(&self, ty: Ty, align: u32) -> Val {
        self.stack_slot(ty, align, false)
    }

    fn stack_slot(&self, ty: Ty, align: u32, zeros: bool) -> Val {
        // SAFETY: the function has an entry block, in which the new instruction goes first; the builder's
        // position is restored.
        unsafe {
            let here = LLVMGetInsertBlock(self.builder);
            let entry = LLVMGetEntryBasicBlock(self.function.get());
            let first = LLVMGetFirstInstruction(entry);
            if first.is_null() {
                LLVMPositionBuilderAtEnd(self.builder, entry);
            } else {
                LLVMPositionBuilderBefore(self.builder, first);
            }
            let slot = LLVMBuildAlloca(self.builder, ty.0, NO_NAME.as_ptr());
            LLVMSetAlignment(slot, align);
            if zeros {
                LLVMBuildStore(self.builder, LLVMConstNull(ty.0), slot);
            }
            LLVMPositionBuilderAtEnd(self.builder, here);
            Val(slot)
        }
    }

    // Control.

    pub(crate) fn block(&self, name: &str) -> Label {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the function is alive, the name is copied.
        Label(unsafe { LLVMAppendBasicBlockInContext(self.context, self.function.get(), name.as_ptr()) })
    }

    pub(crate) fn here(&self) -> Label {
        // SAFETY: the builder stands in a block.
        Label(unsafe { LLVMGetInsertBlock(self.builder) })
    }

    pub(crate) fn go_on_in(&self, block: Label) {
        // SAFETY: the block belongs to the function.
        unsafe { LLVMPositionBuilderAtEnd(self.builder, block.0) };
    }

    pub(crate) fn branch(&self, to: Label) {
        // SAFETY: the block belongs to the function.
        unsafe { LLVMBuildBr(self.builder, to.0) };
    }

    pub(crate) fn branch_if(&self, condition: Val, yes: Label, no: Label) {
        // SAFETY: the condition is one bit, the blocks belong to the function.
        unsafe { LLVMBuildCondBr(self.builder, condition.0, yes.0, no.0) };
    }

    pub(crate) fn ret(&self) {
        // SAFETY: the function returns nothing.
        unsafe { LLVMBuildRetVoid(self.builder) };
    }

    pub(crate) fn unreachable(&self) {
        // SAFETY: the builder stands in a block.
        unsafe { LLVMBuildUnreachable(self.builder) };
    }

    pub(crate) fn phi(&self, ty: Ty) -> Val {
        // SAFETY: the type is alive, the builder stands at the head of a block.
        Val(unsafe { LLVMBuildPhi(self.builder, ty.0, NO_NAME.as_ptr()) })
    }

    pub(crate) fn incoming(&self, phi: Val, value: Val, from: Label) {
        // SAFETY: the phi takes values of its type from blocks of the function.
        unsafe { LLVMAddIncoming(phi.0, [value.0].as_mut_ptr(), [from.0].as_mut_ptr(), 1) };
    }
}

//! Textures and surfaces. The runtime evaluates them lane by lane (manual: "Texture Instructions", "Surface
//! Instructions").

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::Val;
use super::runtime::Service;
use crate::abi::ImageKind;
use broadloom_eval::texture::{Fetch, Query, Result4, SurfaceAccess, element_type};
use broadloom_ptx::{Base, InstData, Opcode, Operand, Type};

impl Emitter<'_> {
    /// Emits an instruction of the classes `texture` and `surface`.
    pub(crate) fn image(&mut self, opcode: Opcode, inst: &InstData) -> TranslationResult<()> {
        let unknown = || TranslationError(format!("`{}`", inst.mnemonic_text()));
        let mut words: Vec<(Operand, Type)> = vec![];
        let mut take = |operands: &mut dyn Iterator<Item = &Operand>, ty: Type| {
            words.extend(operands.map(|operand| (operand.clone(), ty)));
        };
        let (kind, bits, ty) = if let Some(fetch) = Fetch::of(inst) {
            let inputs = Fetch::inputs(inst).ok_or_else(unknown)?;
            let (layer, rest) = inputs.coordinates.split_at(usize::from(fetch.geometry.has_layer()));
            let number = if fetch.by_index { Type::S32 } else { Type::F32 };
            take(&mut layer.iter(), Type::U32);
            take(&mut rest.iter(), number);
            take(&mut inputs.level.iter().copied(), number);
            take(&mut inputs.offset.iter(), Type::S32);
            let ty = if fetch.result == Result4::Halves { Type::B16 } else { Type::B32 };
            (ImageKind::Fetch, fetch.bits(), ty)
        } else if let Some(access) = SurfaceAccess::of(inst) {
            let (coordinates, values) = SurfaceAccess::inputs(inst).ok_or_else(unknown)?;
            take(&mut coordinates.iter(), Type::S32);
            if access.results() == 0 {
                take(&mut values.iter(), element_type(&access));
            }
            (ImageKind::Surface, access.bits(), element_type(&access))
        } else {
            let query = Query::of(inst).ok_or_else(unknown)?;
            take(&mut inst.operands.get(2).into_iter(), Type::U32);
            if words.is_empty() {
                words.push((Operand::from(0), Type::U32));
            }
            let kind = if opcode == Opcode::Txq { ImageKind::TextureQuery } else { ImageKind::SurfaceQuery };
            (kind, query as u64, Type::B32)
        };
        let handle = self.handle(inst)?;
        let results: Vec<Operand> = match kind {
            ImageKind::Surface if opcode != Opcode::Suld => vec![],
            _ => inst.operands.first().map_or(vec![], |held| held.elements().to_vec()),
        };
        let values = self.serve_image(inst, kind, bits, handle, &words, results.len())?;
        for (operand, value) in results.iter().zip(values) {
            let value = self.ir.resize(value, self.ir.int(ty.bits()), false);
            self.assign(operand, ty, value)?;
        }
        // Textures are always fully resident.
        let resident = self.written(inst).into_iter().find(|(_, ty)| *ty == Type::Pred);
        if let Some((operand, ty)) = resident {
            let there = self.constant(1, ty, true);
            self.assign(&operand, ty, there)?;
        }
        Ok(())
    }

    /// Returns the handle of the texture or surface.
    fn handle(&self, inst: &InstData) -> TranslationResult<Val> {
        let scalar = self.lanes.is_none();
        match inst.bracketed().map(|address| address.base) {
            Some(Base::Reg(reg)) => self.fetch(&Operand::Reg(reg), Type::B64, scalar),
            Some(Base::Symbol(symbol)) => self.symbol_address(symbol, scalar),
            Some(Base::Absolute) | None => Err(TranslationError("a texture without a name".into())),
        }
    }

    /// Calls the runtime for the active lanes. Returns its results, 64 bits per lane.
    fn serve_image(
        &mut self,
        inst: &InstData,
        kind: ImageKind,
        bits: u64,
        handle: Val,
        words: &[(Operand, Type)],
        results: usize,
    ) -> TranslationResult<Vec<Val>> {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let lanes = self.lanes.unwrap_or(1);
        let row = ir.lanes_of(i64, self.lanes);
        let bytes = 8 * u64::from(lanes);
        let from = self.room(ir.vector(i64, lanes * (1 + words.len() + results) as u32));
        let to = ir.offset_by(from, (1 + words.len() as u64) * bytes);
        ir.store(handle, from, 8);
        for (index, (operand, ty)) in (1u64..).zip(words) {
            let value = self.fetch(operand, *ty, self.lanes.is_none())?;
            let value = ir.bitcast(value, ir.int(ir.bits(ir.type_of(value))));
            ir.store(ir.resize(value, i64, false), ir.offset_by(from, index * bytes), 8);
        }
        let site = self.site(inst);
        let active = self.active(inst)?;
        let mask = self.as_mask(active);
        let arguments =
            [self.warp, ir.constant(i32, kind as u64), ir.constant(i64, bits), ir.constant(i32, site), mask, from, to];
        self.if_any(active, i32, |emitter| {
            emitter.serve(Service::Image, ir.void(), &arguments);
            ir.constant(i32, 0)
        });
        Ok((0..results as u64).map(|index| ir.load(row, ir.offset_by(to, index * bytes), 8)).collect())
    }
}

//! Matrices on their way between memory and fragments: `ldmatrix`, `stmatrix`, `movmatrix`, `wmma.load`, `wmma.store`.

use super::{LANES, Role, Shape, is_plain, per_accumulator, per_register};
use broadloom_ptx::{InstData, Modifier, Opcode, Type};

/// Matrices of 8 by 8 elements of 16 bits, whose rows of 16 bytes lie where lanes say: those of the first matrix where lanes 0 to 7 say, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// How many matrices: 1, 2 or 4. Each is one register of every lane.
    pub count: u32,
    /// Whether rows in memory are columns in registers.
    pub transposed: bool,
}

/// Bytes of a row of a matrix of 8 by 8, and what its address is a multiple of.
pub const ROW_BYTES: u64 = 16;

impl Rows {
    /// `ldmatrix` and `stmatrix` as they are for sm_90; `None` for other instructions and later forms.
    pub fn of(inst: &InstData) -> Option<Rows> {
        let held = match inst.opcode()? {
            Opcode::Ldmatrix => inst.operands.first()?,
            Opcode::Stmatrix => inst.operands.get(1)?,
            _ => return None,
        };
        let registers = held.elements().len() as u32;
        if !inst.has(Modifier::M8n8) {
            return None;
        }
        let counts = [(Modifier::X1, 1), (Modifier::X2, 2), (Modifier::X4, 4)];
        let count = counts.iter().find(|(modifier, _)| inst.has(*modifier))?.1;
        (registers == count).then(|| Rows { count, transposed: inst.has(Modifier::Trans) })
    }

    /// Where one of the two elements of a lane's register is: its row in memory, and the number of the element in it.
    pub fn element(self, lane: u32, part: u32) -> (u32, u32) {
        let (row, column) = (lane / 4, 2 * (lane % 4) + part);
        if self.transposed { (column, row) } else { (row, column) }
    }

    /// Registers out of rows: `rows[8 * matrix + row]` gives `[matrix][lane]`.
    pub fn load(self, rows: &[[u8; 16]], registers: &mut [u64]) {
        for (position, register) in registers.iter_mut().enumerate().take(self.count as usize * LANES) {
            let (matrix, lane) = (position / LANES, (position % LANES) as u32);
            *register = (0..2).fold(0, |bits, part| {
                let (row, element) = self.element(lane, part);
                let row = &rows[8 * matrix + row as usize];
                let at = 2 * element as usize;
                bits | u64::from(u16::from_le_bytes([row[at], row[at + 1]])) << (16 * part)
            });
        }
    }

    /// Rows out of registers.
    pub fn store(self, registers: &[u64], rows: &mut [[u8; 16]]) {
        for (position, register) in registers.iter().enumerate().take(self.count as usize * LANES) {
            let (matrix, lane) = (position / LANES, (position % LANES) as u32);
            for part in 0..2 {
                let (row, element) = self.element(lane, part);
                let at = 2 * element as usize;
                let bytes = ((register >> (16 * part)) as u16).to_le_bytes();
                rows[8 * matrix + row as usize][at..at + 2].copy_from_slice(&bytes);
            }
        }
    }
}

/// `movmatrix`: the transpose of a matrix of 8 by 8, each lane with one register of it.
pub fn transpose(registers: &[u64], transposed: &mut [u64]) {
    let mut rows = [[0; 16]; 8];
    Rows { count: 1, transposed: false }.store(registers, &mut rows);
    Rows { count: 1, transposed: true }.load(&rows, transposed);
}

/// A fragment of `wmma` on its way from or to memory. Each lane moves the elements that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Which matrix it is.
    pub role: Role,
    /// The sizes of the product.
    pub shape: Shape,
    /// The type of an element.
    pub ty: Type,
    /// How many registers of a lane hold it.
    pub registers: u32,
    /// Whether columns, not rows, lie in one piece.
    pub by_columns: bool,
}

impl Transfer {
    /// `wmma.load` and `wmma.store`; `None` for other instructions.
    pub fn of(inst: &InstData) -> Option<Transfer> {
        let held = match inst.opcode()? {
            Opcode::WmmaLoad => inst.operands.first(),
            Opcode::WmmaStore => inst.operands.get(1),
            _ => return None,
        };
        if !is_plain(inst) {
            return None;
        }
        let roles = [(Modifier::A, Role::A), (Modifier::B, Role::B), (Modifier::C, Role::C), (Modifier::D, Role::C)];
        let registers = held.map_or(1, |held| held.elements().len() as u32);
        let transfer = Transfer {
            role: roles.iter().find(|(modifier, _)| inst.has(*modifier))?.1,
            shape: Shape::of(inst)?,
            ty: inst.types().next()?,
            registers,
            by_columns: inst.has(Modifier::Col),
        };
        let (rows, columns) = transfer.shape.extent(transfer.role);
        (registers * transfer.per_register() * LANES as u32 >= rows * columns).then_some(transfer)
    }

    /// Elements in one register.
    pub fn per_register(&self) -> u32 {
        if self.role == Role::C { per_accumulator(self.ty) } else { per_register(self.ty) }
    }

    /// Elements from a row to the next, or a column to the next, where the instruction does not say.
    pub fn least_stride(&self) -> u32 {
        let (rows, columns) = self.shape.extent(self.role);
        if self.by_columns { rows } else { columns }
    }

    /// In which row or column an element is, counted in strides, and which of its elements it is.
    pub fn place(&self, lane: u32, element: u32) -> (u32, u32) {
        let (row, column) = self.shape.place(self.role, lane, element, self.per_register());
        if self.by_columns { (column, row) } else { (row, column) }
    }

    /// Bits of memory that are moved at once, and how many such pieces a register has: the whole register where its elements lie side by side.
    pub fn pieces(&self) -> (u32, u32) {
        let per = self.per_register();
        let (first, second) = (self.place(0, 0), self.place(0, per - 1));
        if per == 1 || first.0 == second.0 { (self.ty.bits() * per, 1) } else { (self.ty.bits(), per) }
    }
}

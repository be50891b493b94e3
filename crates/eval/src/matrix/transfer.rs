//! Matrix transfers between memory and fragments: `ldmatrix`, `stmatrix`, `movmatrix`, `wmma.load`,
//! `wmma.store`.

use super::{LANES, ProductShape, Role, is_plain, per_accumulator, per_register};
use broadloom_ptx::{InstData, Modifier, Opcode, Type};

/// Matrices of 8 by 8 elements of 16 bits. Lanes provide the addresses of their rows of 16 bytes: lanes 0 to
/// 7 those of the first matrix, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Number of matrices: 1, 2 or 4. Each is one register of every lane.
    pub count: u32,
    /// True if rows in memory are columns in registers.
    pub transposed: bool,
}

/// Bytes of a row of an 8 by 8 matrix, and the alignment of its address.
pub const ROW_BYTES: u64 = 16;

impl Rows {
    /// Returns the transfer of `ldmatrix` and `stmatrix` in their sm_90 forms; `None` for other instructions
    /// and later forms.
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

    /// Returns the position of one of the two elements of a lane's register: its row in memory, and its index
    /// in the row.
    pub fn element(self, lane: u32, part: u32) -> (u32, u32) {
        let (row, column) = (lane / 4, 2 * (lane % 4) + part);
        if self.transposed { (column, row) } else { (row, column) }
    }

    /// Fills registers from rows: `rows[8 * matrix + row]` gives `[matrix][lane]`.
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

    /// Fills rows from registers.
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

/// Computes `movmatrix`: the transpose of an 8 by 8 matrix, each lane with one register of it.
pub fn transpose(registers: &[u64], transposed: &mut [u64]) {
    let mut rows = [[0; 16]; 8];
    Rows { count: 1, transposed: false }.store(registers, &mut rows);
    Rows { count: 1, transposed: true }.load(&rows, transposed);
}

/// Transfer of a `wmma` fragment from or to memory. Each lane moves the elements that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Role of the matrix.
    pub role: Role,
    /// Sizes of the product.
    pub shape: ProductShape,
    /// Type of an element.
    pub ty: Type,
    /// Number of registers of a lane.
    pub registers: u32,
    /// True for column-major order.
    pub by_columns: bool,
}

impl Transfer {
    /// Returns the transfer of `wmma.load` and `wmma.store`; `None` for other instructions.
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
            shape: ProductShape::of(inst)?,
            ty: inst.types().next()?,
            registers,
            by_columns: inst.has(Modifier::Col),
        };
        let (rows, columns) = transfer.shape.extent(transfer.role);
        (registers * transfer.per_register() * LANES as u32 >= rows * columns).then_some(transfer)
    }

    /// Returns the number of elements in one register.
    pub fn per_register(&self) -> u32 {
        if self.role == Role::C { per_accumulator(self.ty) } else { per_register(self.ty) }
    }

    /// Returns the default stride between rows, or between columns, in elements.
    pub fn least_stride(&self) -> u32 {
        let (rows, columns) = self.shape.extent(self.role);
        if self.by_columns { rows } else { columns }
    }

    /// Returns the row or column of an element, counted in strides, and its index there.
    pub fn place(&self, lane: u32, element: u32) -> (u32, u32) {
        let (row, column) = self.shape.place(self.role, lane, element, self.per_register());
        if self.by_columns { (column, row) } else { (row, column) }
    }

    /// Returns the bits of memory that are moved at once, and the number of such pieces in a register: the
    /// whole register if its elements are contiguous.
    pub fn pieces(&self) -> (u32, u32) {
        let per = self.per_register();
        let (first, second) = (self.place(0, 0), self.place(0, per - 1));
        if per == 1 || first.0 == second.0 { (self.ty.bits() * per, 1) } else { (self.ty.bits(), per) }
    }
}

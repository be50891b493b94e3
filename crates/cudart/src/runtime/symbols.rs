//! Variables of modules, addressed by their host variables.

use crate::boundary::{Call, exported, transfers};
use crate::check::because;
use crate::objects::boxes::Direction;
use crate::pointer::Out;
use crate::status::{Outcome, Status};
use crate::work::Transfer;
use broadloom_device::GlobalVariable;

pub(crate) fn variable(call: &Call, symbol: usize) -> Outcome<GlobalVariable> {
    call.runtime.device()?;
    let symbol = call.runtime.registry.symbol(symbol)?;
    symbol
        .image
        .variable(call.runtime, &symbol.name)
        .map_err(|status| if status == Status::NOT_FOUND { Status::INVALID_SYMBOL } else { status })
}

/// Returns the address at an offset in a variable, if `bytes` bytes fit there.
pub(crate) fn place(call: &Call, symbol: usize, bytes: usize, offset: usize) -> Outcome<u64> {
    let variable = variable(call, symbol)?;
    let end = (bytes as u64).checked_add(offset as u64);
    if end.is_some_and(|end| end <= variable.bytes) {
        return Ok(variable.address + offset as u64);
    }
    because(|| {
        let name = call.runtime.registry.symbol(symbol).map(|symbol| symbol.name.clone()).unwrap_or_default();
        format!("{bytes} bytes at offset {offset} do not fit into the variable `{name}` of {} bytes", variable.bytes)
    });
    Err(Status::INVALID_VALUE)
}

fn to_symbol(kind: u32) -> Outcome<Direction> {
    match Direction::new(kind)? {
        direction @ (Direction::HostToDevice | Direction::DeviceToDevice | Direction::Default) => Ok(direction),
        Direction::HostToHost | Direction::DeviceToHost => Err(Status::INVALID_MEMCPY_DIRECTION),
    }
}

fn from_symbol(kind: u32) -> Outcome<Direction> {
    match Direction::new(kind)? {
        direction @ (Direction::DeviceToHost | Direction::DeviceToDevice | Direction::Default) => Ok(direction),
        Direction::HostToHost | Direction::HostToDevice => Err(Status::INVALID_MEMCPY_DIRECTION),
    }
}

transfers! { runtime
    fn cudaMemcpyToSymbol / cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbolAsync / cudaMemcpyToSymbolAsync_ptsz
    (call, symbol: usize, from: u64, bytes: usize, offset: usize, kind: u32) => Transfer::bytes(place(call, symbol, bytes, offset)?, from, bytes, to_symbol(kind)?);
    fn cudaMemcpyFromSymbol / cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbolAsync / cudaMemcpyFromSymbolAsync_ptsz
    (call, to: u64, symbol: usize, bytes: usize, offset: usize, kind: u32) => Transfer::bytes(to, place(call, symbol, bytes, offset)?, bytes, from_symbol(kind)?);
}

exported! { runtime
    fn cudaGetSymbolAddress(call, address: Out<u64>, symbol: usize) => address.set(variable(call, symbol)?.address);
    fn cudaGetSymbolSize(call, bytes: Out<usize>, symbol: usize) => bytes.set(variable(call, symbol)?.bytes as usize);
}

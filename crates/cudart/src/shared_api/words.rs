//! Lists of stream memory operations.

use crate::boundary::Call;
use crate::objects::words::{Reduction, WaitCondition, WordOperation};
use crate::objects::work::Work;
use crate::pointer::In;
use crate::status::{Outcome, Status};

/// `CUstreamBatchMemOpParams`: an operation and its data, in six words.
type Parameters = [u64; 6];

// Numbers in the headers.
const REDUCTION_ADD: u32 = 0;
const REDUCTION_AND: u32 = 5;
const REDUCTION_OR: u32 = 6;
const UNSIGNED_32: u32 = 14;
const UNSIGNED_64: u32 = 22;

/// Builds a wait. Flushing of remote writes is not supported.
pub(crate) fn waiting(address: u64, value: u64, wide: bool, flags: u32) -> Outcome<WordOperation> {
    const FLUSH: u32 = 1 << 30;
    if flags & FLUSH != 0 {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok(WordOperation::Wait { address, value, wide, until: WaitCondition::new(flags)? })
}

/// Decodes one operation of a batch.
fn operation([kind, address, value, flags, ..]: Parameters) -> Outcome<WordOperation> {
    let flags = flags as u32;
    Ok(match kind as u32 {
        1 => waiting(address, u64::from(value as u32), false, flags)?,
        2 => WordOperation::Write { address, value: u64::from(value as u32), wide: false },
        3 => return Err(Status::NOT_SUPPORTED),
        4 => waiting(address, value, true, flags)?,
        5 => WordOperation::Write { address, value, wide: true },
        6 => WordOperation::Barrier,
        _ => return Err(Status::INVALID_VALUE),
    })
}

/// Decodes a list of operations.
pub(crate) fn list(count: u32, place: usize) -> Outcome<Vec<WordOperation>> {
    const MOST: u32 = 256;
    if count > MOST {
        return Err(Status::INVALID_VALUE);
    }
    let all = In::<Parameters>::at(place).get_all(count as usize)?;
    all.into_iter().map(|words| if words[0] as u32 == 8 { reduction(words) } else { operation(words) }).collect()
}

/// Decodes a reduction: flags beside the kind, then operator and type in one word, then address and value.
fn reduction([kind, operation, address, value, ..]: Parameters) -> Outcome<WordOperation> {
    if kind >> 32 != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let reduction = match operation as u32 {
        REDUCTION_OR => Reduction::Or,
        REDUCTION_AND => Reduction::And,
        REDUCTION_ADD => Reduction::Add,
        _ => return Err(Status::INVALID_VALUE),
    };
    let wide = match (operation >> 32) as u32 {
        UNSIGNED_32 => false,
        UNSIGNED_64 => true,
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(WordOperation::Reduce { address, value, wide, reduction })
}

/// Builds the work of a node from a list of operations.
pub(crate) fn batch(call: &Call, count: u32, place: usize) -> Outcome<Work> {
    let operations = list(count, place)?;
    operations.iter().try_for_each(|operation| operation.check(call.runtime))?;
    Ok(Work::Words(operations))
}

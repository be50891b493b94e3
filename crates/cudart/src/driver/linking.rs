//! The driver's linker. Its input is PTX, alone or in fat binaries, objects and libraries. Its output is one
//! PTX module for `cuModuleLoadData`.

use crate::boundary::{Call, exported};
use crate::image::assemble;
use crate::jit::{Logs, most_registers};
use crate::link::{brings_device_runtime, limit_registers, link, with_members};
use crate::objects::image::{Image, Origin};
use crate::objects::linking::Linking;
use crate::pointer::{Out, Text, bytes_there};
use crate::status::{Outcome, Status};
use crate::{archive, fatbin};
use std::ffi::CString;
use std::sync::PoisonError;

const PTX: u32 = 1;
const FAT_BINARY: u32 = 2;
const OBJECT: u32 = 3;
const LIBRARY: u32 = 4;

fn add(call: &Call, linking: &Linking, kind: u32, bytes: Vec<u8>) -> Outcome {
    let texts = match kind {
        PTX => vec![String::from_utf8(bytes).map_err(|_| Status::INVALID_PTX)?.trim_end_matches('\0').to_owned()],
        FAT_BINARY => of_containers(call, &[&bytes])?,
        OBJECT => of_containers(call, &archive::fat_binaries(&bytes).map_err(|_| Status::INVALID_IMAGE)?)?,
        LIBRARY => {
            let members = archive::members(&bytes).map_err(|_| Status::INVALID_IMAGE)?;
            let objects = members.into_iter().filter_map(|member| archive::fat_binaries(member).ok());
            objects.map(|containers| of_containers(call, &containers)).collect::<Outcome<Vec<_>>>()?.concat()
        }
        // Machine code and intermediate representations of compilers.
        _ => return Err(Status::NO_BINARY_FOR_GPU),
    };
    // Invalid PTX is reported by the call that adds it. Missing symbols may be added later.
    texts.iter().try_for_each(|text| assemble(text.clone()).map(drop))?;
    let place = if kind == LIBRARY { &linking.members } else { &linking.texts };
    place.lock().unwrap_or_else(PoisonError::into_inner).extend(texts);
    Ok(())
}

/// Returns the PTX of fat binaries, without NVIDIA's device runtime, which has its own implementation here.
fn of_containers(call: &Call, containers: &[&[u8]]) -> Outcome<Vec<String>> {
    let of_container = |bytes: &&[u8]| {
        let entries = fatbin::entries(bytes).map_err(|_| Status::INVALID_IMAGE)?;
        let best = fatbin::best(&entries, call.runtime.capability()).map_err(|_| Status::NO_BINARY_FOR_GPU)?;
        best.text().map_err(|_| Status::INVALID_IMAGE)
    };
    containers.iter().filter(|bytes| !brings_device_runtime(bytes)).map(of_container).collect()
}

fn create(call: &Call, state: Out<usize>, logs: Logs, most_registers: Option<u32>) -> Outcome {
    state.wanted()?;
    logs.write(|| Ok(()))?;
    state.set(call.runtime.linkings.insert(Linking { logs, most_registers, ..Linking::default() }))
}

fn read(path: Text) -> Outcome<Vec<u8>> {
    crate::shared_api::modules::file(&path.get()?)
}

exported! { driver
    fn cuLinkCreate = cuLinkCreate_v2(call, count: u32, options: usize, values: usize, state: Out<usize>)
        => create(call, state, Logs::among(count, options, values)?, most_registers(count, options, values)?);

    fn cuLinkAddData = cuLinkAddData_v2(call, state: usize, kind: u32, data: usize, size: usize, _name: usize, _count: u32, _options: usize, _values: usize) {
        let linking = call.runtime.linkings.get(state)?;
        linking.logs.write(|| add(call, &linking, kind, bytes_there(data, size)?))
    }

    fn cuLinkAddFile = cuLinkAddFile_v2(call, state: usize, kind: u32, path: Text, _count: u32, _options: usize, _values: usize) {
        let linking = call.runtime.linkings.get(state)?;
        linking.logs.write(|| add(call, &linking, kind, read(path)?))
    }

    /// Links the inputs. The module stays valid until the link operation is destroyed.
    fn cuLinkComplete(call, state: usize, module: Out<usize>, size: Out<usize>) {
        let linking = call.runtime.linkings.get(state)?;
        let texts = linking.texts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let members = linking.members.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = match with_members(texts, members).as_slice() {
            [] => return Err(Status::INVALID_VALUE),
            [one] => one.clone(),
            several => link(several),
        };
        let text = linking.most_registers.map(|most| limit_registers(&text, most)).unwrap_or(text);
        linking.logs.write(|| Image::new(Origin::Text(text.clone())).loaded(call.runtime).map(drop))?;
        let text = CString::new(text).map_err(|_| Status::INVALID_PTX)?;
        module.set(text.as_ptr() as usize)?;
        size.set_if_wanted(text.as_bytes_with_nul().len());
        *linking.linked.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        Ok(())
    }

    fn cuLinkDestroy(call, state: usize) => call.runtime.linkings.remove(state).map(drop);
}

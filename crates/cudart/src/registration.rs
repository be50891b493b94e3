//! What `nvcc` registers before `main`: fat binaries, and the host's side of kernels and variables.
//!
//! Registering reads nothing but the head of a fat binary: kernels are read when one of them is first used.

use crate::fatbin;
use crate::handles::Handle;
use crate::image::{Image, Origin};
use crate::pointer::In;
use crate::status::{Outcome, Status};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The control structure of a fat binary in an executable.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapper {
    magic: u32,
    version: u32,
    data: usize,
    /// Version 2: a list, ended by zero, of binaries that are to be linked.
    linked: usize,
}

const WRAPPER_MAGIC: u32 = 0x4662_43b1;

/// The host's side of a variable.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    /// Where it is defined.
    pub(crate) image: Arc<Image>,
    /// Its name in PTX.
    pub(crate) name: String,
}

#[derive(Debug, Default)]
struct State {
    images: HashMap<Handle, Arc<Image>>,
    next: Handle,
    functions: HashMap<usize, (Arc<Image>, String)>,
    variables: HashMap<usize, Symbol>,
}

/// All that was registered.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<State>);

impl Registry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a fat binary by its control structure.
    pub(crate) fn add(&self, wrapper: In<Wrapper>) -> Outcome<Handle> {
        let image = Arc::new(Image::registered(origin(wrapper)?));
        let mut state = self.state();
        state.next += 16;
        // The compiled program passes it back and never looks behind it.
        let handle = 0x0b10_0100_0000_0000 + state.next;
        state.images.insert(handle, image);
        Ok(handle)
    }

    /// Forgets a fat binary and all that belongs to it.
    pub(crate) fn remove(&self, handle: Handle) {
        let mut state = self.state();
        if let Some(image) = state.images.remove(&handle) {
            state.functions.retain(|_, (of, _)| !Arc::ptr_eq(of, &image));
            state.variables.retain(|_, symbol| !Arc::ptr_eq(&symbol.image, &image));
        }
    }

    /// A fat binary by its handle.
    pub(crate) fn image(&self, handle: Handle) -> Outcome<Arc<Image>> {
        self.state().images.get(&handle).cloned().ok_or(Status::INVALID_HANDLE)
    }

    /// Says which kernel stands behind a function of the host.
    pub(crate) fn add_function(&self, handle: Handle, host: usize, name: String) -> Outcome {
        let image = self.image(handle)?;
        self.state().functions.insert(host, (image, name));
        Ok(())
    }

    /// Says which variable stands behind one of the host.
    pub(crate) fn add_variable(&self, handle: Handle, host: usize, name: String) -> Outcome {
        let image = self.image(handle)?;
        self.state().variables.insert(host, Symbol { image, name });
        Ok(())
    }

    /// The kernel behind a function of the host.
    pub(crate) fn function(&self, host: usize) -> Option<(Arc<Image>, String)> {
        self.state().functions.get(&host).cloned()
    }

    /// The variable behind one of the host.
    pub(crate) fn symbol(&self, host: usize) -> Outcome<Symbol> {
        self.state().variables.get(&host).cloned().ok_or(Status::INVALID_SYMBOL)
    }

    /// The highest architecture that any fat binary has PTX for.
    pub(crate) fn highest_ptx(&self) -> Option<u32> {
        let images: Vec<Arc<Image>> = self.state().images.values().cloned().collect();
        images.iter().filter_map(|image| image.highest_ptx()).max()
    }
}

/// What a control structure points to.
pub(crate) fn origin(wrapper: In<Wrapper>) -> Outcome<Origin> {
    let wrapper = wrapper.get()?;
    if wrapper.magic != WRAPPER_MAGIC {
        return Err(Status::INVALID_IMAGE);
    }
    let mut containers = vec![];
    if wrapper.version >= 2 && wrapper.linked != 0 {
        let mut place = wrapper.linked;
        loop {
            let address = In::<usize>::at(place).get()?;
            if address == 0 {
                break;
            }
            // An element is a container, or again a control structure.
            containers.push(match In::<Wrapper>::at(address).get()? {
                inner if inner.magic == WRAPPER_MAGIC => inner.data,
                _ => address,
            });
            place += size_of::<usize>();
        }
    }
    if containers.is_empty() {
        containers.push(wrapper.data);
    }
    Ok(Origin::FatBinaries(containers))
}

/// The bytes of the container at an address, by its header.
pub(crate) fn container_at(address: usize) -> Result<Vec<u8>, String> {
    let header = crate::pointer::bytes_at(address, 16).map_err(|_| "there is no fat binary")?;
    let whole = fatbin::container_bytes(&header).ok_or("it is no fat binary")?;
    crate::pointer::bytes_at(address, whole).map_err(|_| "there is no fat binary".to_owned())
}

//! Registrations that `nvcc` emits before `main`: fat binaries, and the host side of kernels and variables.
//!
//! Registration reads only the header of a fat binary. Kernels are read on first use.

use crate::handles::Handle;
use crate::objects::image::{Image, Origin};
use crate::pointer::In;
use crate::status::{Outcome, Status};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Control structure of a fat binary in an executable.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapper {
    magic: u32,
    version: u32,
    data: usize,
    /// Version 2: a zero-terminated list of binaries to link.
    linked: usize,
}

const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// Maximum number of binaries linked into one.
const MOST_LINKED: usize = 1 << 16;

/// Host side of a variable.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    /// Module that defines the variable.
    pub(crate) image: Arc<Image>,
    /// Name of the variable in PTX.
    pub(crate) name: String,
}

#[derive(Debug, Default)]
struct RegisteredImages {
    images: HashMap<Handle, Arc<Image>>,
    next: Handle,
    functions: HashMap<usize, (Arc<Image>, String)>,
    variables: HashMap<usize, Symbol>,
}

/// Table of all registrations.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<RegisteredImages>);

impl Registry {
    fn state(&self) -> MutexGuard<'_, RegisteredImages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a fat binary by its control structure.
    pub(crate) fn add(&self, wrapper: In<Wrapper>) -> Outcome<Handle> {
        let image = Arc::new(Image::registered(origin(wrapper)?));
        let mut state = self.state();
        state.next += 16;
        // The compiled program passes the handle back and never dereferences it.
        let handle = 0x0b10_0100_0000_0000 + state.next;
        state.images.insert(handle, image);
        Ok(handle)
    }

    /// Unregisters a fat binary with its functions and variables.
    pub(crate) fn remove(&self, handle: Handle) {
        let mut state = self.state();
        if let Some(image) = state.images.remove(&handle) {
            state.functions.retain(|_, (of, _)| !Arc::ptr_eq(of, &image));
            state.variables.retain(|_, symbol| !Arc::ptr_eq(&symbol.image, &image));
        }
    }

    /// Returns a fat binary by its handle.
    pub(crate) fn image(&self, handle: Handle) -> Outcome<Arc<Image>> {
        self.state().images.get(&handle).cloned().ok_or(Status::INVALID_HANDLE)
    }

    /// Registers the kernel of a host function.
    pub(crate) fn add_function(&self, handle: Handle, host: usize, name: String) -> Outcome {
        let image = self.image(handle)?;
        self.state().functions.insert(host, (image, name));
        Ok(())
    }

    /// Registers the device variable of a host variable.
    pub(crate) fn add_variable(&self, handle: Handle, host: usize, name: String) -> Outcome {
        let image = self.image(handle)?;
        self.state().variables.insert(host, Symbol { image, name });
        Ok(())
    }

    /// Returns the kernel of a host function.
    pub(crate) fn function(&self, host: usize) -> Option<(Arc<Image>, String)> {
        self.state().functions.get(&host).cloned()
    }

    /// Returns the device variable of a host variable.
    pub(crate) fn symbol(&self, host: usize) -> Outcome<Symbol> {
        self.state().variables.get(&host).cloned().ok_or(Status::INVALID_SYMBOL)
    }

    /// Returns the highest architecture for which any fat binary contains PTX.
    pub(crate) fn highest_ptx(&self) -> Option<u32> {
        let images: Vec<Arc<Image>> = self.state().images.values().cloned().collect();
        images.iter().filter_map(|image| image.highest_ptx()).max()
    }
}

/// Returns the fat binaries that a control structure refers to.
pub(crate) fn origin(wrapper: In<Wrapper>) -> Outcome<Origin> {
    let wrapper = wrapper.get_if_there()?;
    if wrapper.magic != WRAPPER_MAGIC {
        return Err(Status::INVALID_IMAGE);
    }
    let mut containers = vec![];
    if wrapper.version >= 2 && wrapper.linked != 0 {
        // The list ends with zero; a broken list ends with the mapped memory.
        let most = crate::mapped::readable(wrapper.linked) / size_of::<usize>();
        for index in 0.. {
            if index >= most.min(MOST_LINKED) {
                return Err(Status::INVALID_IMAGE);
            }
            let address = In::<usize>::at(wrapper.linked + index * size_of::<usize>()).get()?;
            if address == 0 {
                break;
            }
            // An element is a container or another control structure.
            containers.push(match In::<u32>::at(address).get_if_there()? {
                WRAPPER_MAGIC => In::<Wrapper>::at(address).get_if_there()?.data,
                _ => address,
            });
        }
    }
    if containers.is_empty() {
        containers.push(wrapper.data);
    }
    Ok(Origin::FatBinaries(containers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fatbin::{FatbinError, container_at};

    /// Two pages, of which the second is not readable.
    struct Pages(usize);

    const PAGE: usize = 4096;

    impl Pages {
        fn new() -> Pages {
            let (readable, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: maps new memory, which nothing else refers to.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE, readable, flags, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            // SAFETY: this is the second half of the new mapping.
            assert_eq!(unsafe { libc::mprotect(start.byte_add(PAGE), PAGE, libc::PROT_NONE) }, 0);
            Pages(start as usize)
        }

        /// Copies bytes to the end of the readable page.
        fn put(&self, bytes: &[u8]) -> usize {
            let address = self.0 + PAGE - bytes.len();
            crate::pointer::move_bytes(address, bytes.as_ptr() as usize, bytes.len());
            address
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            // SAFETY: unmaps the memory mapped above.
            unsafe { libc::munmap(self.0 as *mut libc::c_void, 2 * PAGE) };
        }
    }

    fn container(bytes: u64) -> Vec<u8> {
        let mut container = 0xba55_ed50u32.to_le_bytes().to_vec();
        container.extend([1, 0, 16, 0]);
        container.extend(bytes.to_le_bytes());
        container.extend([7; 64]);
        container
    }

    #[test]
    fn a_size_is_compared_with_what_is_there() {
        let pages = Pages::new();
        assert_eq!(container_at(pages.put(&container(64))).unwrap(), container(64));
        for bytes in [65, PAGE as u64, 243 << 40, u64::MAX - 16, u64::MAX] {
            let refused = container_at(pages.put(&container(bytes))).unwrap_err().to_string();
            assert!(refused.contains("no fat binary") || refused.contains("are no more than 80"), "{refused}");
        }
        for cut in 0..16 {
            assert_eq!(container_at(pages.put(&container(64)[..cut])).unwrap_err(), FatbinError::Unmapped);
        }
        assert_eq!(container_at(0).unwrap_err(), FatbinError::Unmapped);
        assert_eq!(container_at(pages.0 + PAGE).unwrap_err(), FatbinError::Unmapped);
    }

    #[test]
    fn a_list_without_an_end_is_refused() {
        let pages = Pages::new();
        let inner = container(64);
        let wrapper = |linked: usize| Wrapper { magic: WRAPPER_MAGIC, version: 2, data: 1, linked };
        let list = |words: &[usize]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let address = inner.as_ptr() as usize;
        let of = |wrapper: &Wrapper| origin(In::at(std::ptr::from_ref(wrapper) as usize));
        let whole = of(&wrapper(pages.put(&list(&[address, address, 0])))).unwrap();
        assert!(matches!(whole, Origin::FatBinaries(found) if found == [address, address]));
        for broken in [&[address, address][..], &[8, 0], &[pages.0 + PAGE, 0]] {
            assert_eq!(of(&wrapper(pages.put(&list(broken)))).unwrap_err(), Status::INVALID_IMAGE, "{broken:x?}");
        }
        assert_eq!(of(&wrapper(pages.0 + PAGE)).unwrap_err(), Status::INVALID_IMAGE);
        assert_eq!(origin(In::at(pages.0 + PAGE - 4)).unwrap_err(), Status::INVALID_IMAGE);
    }
}

//! The device that a program may use, and the limits of that use.

use broadloom_device::Device;
use broadloom_scalar::Precision;

/// Minimum number of elements of operations on the device.
///
/// The host needs about a nanosecond for an element, so an operation on this many takes it some tens of
/// microseconds: more than a launch and a wait. Compiled kernels are kept between runs.
pub const THRESHOLD: usize = 1 << 16;

/// Limits on the sizes of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// Maximum size of small calls; replaces the device's own.
    pub(super) fixed: Option<usize>,
    /// True if a warp runs each call on any device.
    pub(super) in_warps: bool,
    /// True if teams run calls that are not small on any device.
    pub(super) in_teams: bool,
}

/// Number of times that the start of a region is reached before it is traced. Planning and compiling a region
/// takes as long as executing it many times.
const REGION_FROM: u32 = 4;

/// Opens a device, or returns the reason why there is none.
pub type Opener = Box<dyn FnMut() -> Result<Device, String> + Send>;

/// The device for large vectors, and the threshold of large vectors.
pub struct Target {
    pub(super) open: Opener,
    pub(super) threshold: usize,
    pub(super) explained: bool,
    pub(super) sequential: Option<Limits>,
    pub(super) templates: bool,
    /// Number of times that the start of a region is reached before it is traced.
    pub(super) region_from: u32,
    pub(super) precision: Precision,
}

impl Target {
    /// Makes a target. `open` is called for the first large vector.
    pub fn new(open: impl FnMut() -> Result<Device, String> + Send + 'static) -> Target {
        Target {
            open: Box::new(open),
            threshold: THRESHOLD,
            explained: false,
            sequential: Some(Limits::default()),
            templates: true,
            region_from: REGION_FROM,
            precision: Precision::Accurate,
        }
    }

    /// Sets the minimum number of elements of operations on the device. With 0, every operation is executed
    /// there.
    #[must_use]
    pub fn with_threshold(mut self, elements: usize) -> Target {
        self.threshold = elements;
        self
    }

    /// Sets the precision of elementary functions, divisions and square roots of 32-bit floats on the device.
    /// Those of 64-bit floats, and all on the host, are accurate.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Target {
        self.precision = precision;
        self
    }

    /// Disables sequential calls.
    #[must_use]
    pub fn without_sequential_calls(mut self) -> Target {
        self.sequential = None;
        self
    }

    /// Disables templates: the machine executes every call of a [`Program`](crate::Program), and every region
    /// between two waits.
    #[must_use]
    pub fn without_templates(mut self) -> Target {
        self.templates = false;
        self
    }

    /// Sets the number of times that the start of a region between two waits is reached before it becomes a
    /// template.
    #[must_use]
    pub fn with_regions_from(mut self, times: u32) -> Target {
        self.region_from = times;
        self
    }

    /// Tells whether calls may be launched from templates.
    pub(crate) fn has_templates(&self) -> bool {
        self.templates
    }

    /// Lets calls with at most this many elements run sequentially on any device.
    #[must_use]
    pub fn with_sequential_limit(mut self, elements: usize) -> Target {
        self.sequential.get_or_insert_default().fixed = Some(elements);
        self
    }

    /// Lets a warp run a sequential call, even on a device on which a thread would run it.
    #[must_use]
    pub fn with_calls_in_warps(mut self) -> Target {
        self.sequential.get_or_insert_default().in_warps = true;
        self
    }

    /// Lets teams of warps run calls beyond the limit of [`Target::with_sequential_limit`], even on a device
    /// with too few warps.
    #[must_use]
    pub fn with_calls_in_teams(mut self) -> Target {
        self.sequential.get_or_insert_default().in_teams = true;
        self
    }

    /// Keeps plans as text, in [`Statistics::summaries`](super::Statistics::summaries) and
    /// [`Statistics::ptx`](super::Statistics::ptx).
    #[must_use]
    pub fn explained(mut self) -> Target {
        self.explained = true;
        self
    }
}

//! Adaptation of a module to the driver: a `.version` that it knows and a `.target` that the GPU supports.
//!
//! - A target that the GPU can run stays unchanged. The driver compiles for the GPU anyway, and the target
//!   affects the semantics: before `sm_70` the threads of a warp run in lockstep, and instructions such as
//!   `shfl` without `.sync` exist.
//! - A later target becomes that of the GPU, and a later version that of the driver, if nothing in the module
//!   needs more. Otherwise the instruction is refused with its location: the verifier runs again with the new
//!   header.
//! - A version before 2.3 becomes 2.3, the first with `.address_size`, which every printed module has.
//! - Targets of a single architecture (`sm_90a`) and of a family (`sm_100f`) stay if the GPU matches, and
//!   otherwise become the GPU's plain target.

use broadloom_device::{Error, Result};
use broadloom_ptx::{IsaVersion, Module, Target, Verified, print, verify};
use std::borrow::Cow;

/// First version with `.address_size`.
const OLDEST: IsaVersion = IsaVersion::new(2, 3);

/// Returns the text of a module for a GPU and a driver.
pub(crate) fn text(module: &Verified, sm: u16, newest: IsaVersion) -> Result<String> {
    fit(module, sm, newest).map(|module| print(&module))
}

fn fit(module: &Verified, sm: u16, newest: IsaVersion) -> Result<Cow<'_, Module>> {
    let target = &module.target;
    let runs = match target.suffix {
        None => target.sm <= sm,
        Some('f') => target.sm / 10 == sm / 10 && target.sm <= sm,
        Some(_) => target.sm == sm,
    };
    if runs && (OLDEST..=newest).contains(&module.version) {
        return Ok(Cow::Borrowed(module));
    }
    let mut fitted: Module = (**module).clone();
    if !runs {
        fitted.target = Target { sm, suffix: None, options: target.options.clone() };
    }
    let needed = fitted.target.since().unwrap_or(fitted.version);
    fitted.version = fitted.version.max(needed).max(OLDEST).min(newest);
    verify(fitted).map(|fitted| Cow::Owned(fitted.into_module())).map_err(Error::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use broadloom_diag::Sources;

    fn module(text: &str) -> Verified {
        let mut sources = Sources::new();
        let id = sources.add("k.ptx", text);
        broadloom_ptx::parse(&sources, id).and_then(verify).unwrap()
    }

    fn header(version: &str, target: &str, body: &str, sm: u16, newest: (u8, u8)) -> Result<String> {
        let text = format!(".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ {body} ret; }}");
        let fitted = super::text(&module(&text), sm, IsaVersion::new(newest.0, newest.1))?;
        Ok(fitted.lines().take(2).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_runs_stays() {
        assert_eq!(header("7.0", "sm_75", "", 90, (9, 0)).unwrap(), ".version 7.0 .target sm_75");
        assert_eq!(header("8.0", "sm_90a", "", 90, (9, 0)).unwrap(), ".version 8.0 .target sm_90a");
    }

    #[test]
    fn what_asks_for_more_than_it_needs_is_brought_down() {
        assert_eq!(header("9.4", "sm_90", "", 90, (9, 0)).unwrap(), ".version 9.0 .target sm_90");
        assert_eq!(header("8.0", "sm_90", "", 80, (9, 0)).unwrap(), ".version 8.0 .target sm_80");
        assert_eq!(header("8.0", "sm_90a", "", 100, (9, 0)).unwrap(), ".version 8.6 .target sm_100");
        assert_eq!(header("8.7", "sm_90a", "", 100, (9, 0)).unwrap(), ".version 8.7 .target sm_100");
    }

    #[test]
    fn versions_without_address_size_are_raised() {
        let old =
            ".version 1.4\n.target sm_10, map_f64_to_f32\n.entry k() { .reg .f32 %f<3>; mad.f32 %f0, %f1, %f2, %f0; exit; }";
        let text = super::text(&module(old), 90, IsaVersion::new(9, 0)).unwrap();
        assert!(text.starts_with(".version 2.3\n.target sm_10, map_f64_to_f32\n.address_size 64\n"), "{text}");
    }

    #[test]
    fn what_needs_more_is_refused_with_its_place() {
        let cluster = ".reg .b32 %r; mov.u32 %r, %cluster_ctarank;";
        let Err(Error::Unsupported(refused)) = header("8.0", "sm_90", cluster, 80, (9, 0)) else { panic!("taken") };
        assert_eq!(refused.error_count(), 1);
    }
}

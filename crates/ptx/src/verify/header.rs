//! Checks of `.version` and `.target`, and of the features that they provide (manual: "PTX Module
//! Directives", "Release Notes").

use super::{BodyChecker, Checker, codes};
use crate::ids::Inst;
use crate::module::Target;
use crate::table::{FormId, Special};
use crate::types::IsaVersion;
use broadloom_diag::{Diagnostic, Span};

impl Target {
    /// Returns the PTX version that introduced it; `None` for unknown targets.
    pub fn since(&self) -> Option<IsaVersion> {
        target_version(self)
    }
}

fn target_version(target: &Target) -> Option<IsaVersion> {
    let (major, minor) = match (target.sm, target.suffix) {
        (90, Some('a')) => (8, 0),
        (100 | 101 | 103 | 120 | 121, Some('f')) => (8, 8),
        (10..=11, _) => (1, 0),
        (12 | 13, _) => (1, 2),
        (20 | 21, _) => (2, 0),
        (30, _) => (3, 0),
        (35, _) => (3, 1),
        (32 | 50, _) => (4, 0),
        (37 | 52, _) => (4, 1),
        (53, _) => (4, 2),
        (60..=62, _) => (5, 0),
        (70, _) => (5, 1),
        (72, _) => (6, 1),
        (75, _) => (6, 3),
        (80, _) => (7, 0),
        (86, _) => (7, 1),
        (87, _) => (7, 4),
        (89 | 90, _) => (7, 8),
        (100 | 101, _) => (8, 6),
        (120, _) => (8, 7),
        (103 | 121, _) => (8, 8),
        (88 | 110, _) => (9, 0),
        (107, _) => (9, 4),
        _ => return None,
    };
    Some(IsaVersion::new(major, minor))
}

/// Tests if a target is in a list such as `sm_90a, sm_100f`. A name that ends in `f` stands for its family:
/// the targets of the same generation that are not older, with suffix `a` or `f`.
pub fn is_among(target: &Target, list: &str) -> bool {
    list.split(',').map(str::trim).any(|name| {
        let name = name.strip_prefix("sm_").unwrap_or(name);
        let end = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
        let Ok(number) = name[..end].parse::<u16>() else { return false };
        match &name[end..] {
            "f" => target.suffix.is_some() && target.sm / 10 == number / 10 && target.sm >= number,
            suffix => target.sm == number && target.suffix == suffix.chars().next(),
        }
    })
}

fn target_name(target: &Target) -> String {
    let suffix = target.suffix.map(String::from).unwrap_or_default();
    format!("sm_{}{suffix}", target.sm)
}

impl Checker<'_> {
    pub(super) fn header(&mut self) {
        let module = self.module;
        if module.version.major == 0 {
            let message = format!("there is no PTX of version {}", module.version);
            self.report(codes::BAD_HEADER, message, Span::default(), "");
        }
        if !matches!(module.address_size, 32 | 64) {
            let message = format!("addresses have 32 or 64 bits, not {}", module.address_size);
            self.report(codes::BAD_HEADER, message, Span::default(), "");
        }
        match target_version(&module.target) {
            Some(needed) if needed > module.version => {
                let name = target_name(&module.target);
                let message = format!("PTX of version {} does not have the target `{name}`", module.version);
                let help = format!("write `.version {needed}` or newer");
                self.push(Diagnostic::error(codes::BAD_HEADER, message).help(help), Span::default(), "");
            }
            Some(_) | None => {}
        }
    }
}

impl BodyChecker<'_, '_> {
    /// Checks that the form is not newer than the module.
    pub(super) fn available(&mut self, inst: Inst, id: FormId) {
        let (form, module) = (id.get(), self.module);
        if self.checker.any_version {
            return;
        }
        let name = || self.function.insts[inst].mnemonic_text();
        if form.isa > module.version {
            let message = format!("`{}` needs PTX {}, and the module says {}", name(), form.isa, module.version);
            let help = format!("write `.version {}` or newer", form.isa);
            if self.checker.told_forms.insert(id) {
                self.push(inst, Diagnostic::error(codes::NEEDS_VERSION, message).help(help), "not in this version");
            }
        } else if let Some(list) = form.only.filter(|list| !is_among(&module.target, list)) {
            let target = target_name(&module.target);
            let message = format!("`{}` is not on the target `{target}`", name());
            let note = format!("only {list} have it");
            if self.checker.told_forms.insert(id) {
                self.push(inst, Diagnostic::error(codes::NEEDS_TARGET, message).note(note), "not on this target");
            }
        } else if form.sm > module.target.sm {
            let target = target_name(&module.target);
            let message = format!("`{}` needs sm_{}, and the module is for {target}", name(), form.sm);
            let help = format!("write `.target sm_{}` or newer", form.sm);
            if self.checker.told_forms.insert(id) {
                self.push(inst, Diagnostic::error(codes::NEEDS_TARGET, message).help(help), "not on this target");
            }
        }
    }

    /// Checks that the special register is not newer than the module.
    pub(super) fn special_available(&mut self, inst: Inst, special: Special) {
        let (row, module) = (special.row(), self.module);
        let (code, what, help) = if row.isa > module.version {
            (codes::NEEDS_VERSION, format!("PTX {}", row.isa), format!("write `.version {}` or newer", row.isa))
        } else if row.sm > module.target.sm {
            (codes::NEEDS_TARGET, format!("sm_{}", row.sm), format!("write `.target sm_{}` or newer", row.sm))
        } else {
            return;
        };
        if self.checker.told_specials.insert(special) {
            let message = format!("the special register `{}` needs {what}", row.name);
            self.push(inst, Diagnostic::error(code, message).help(help), "not in this module");
        }
    }
}

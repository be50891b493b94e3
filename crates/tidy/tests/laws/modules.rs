//! References between the modules of a crate go one way.

use broadloom_tidy::modules::{Circle, Modules};
use broadloom_tidy::{Repository, hold};
use std::collections::BTreeMap;

/// Modules in circles that are left, by crate and folder. A number may only fall.
const LEFT: &[(&str, usize)] = &[];

/// A circle cannot be read from one end, and no part of it can be tested, moved or replaced alone.
#[test]
fn modules_form_no_circles() {
    let repository = Repository::open();
    let mut found: BTreeMap<String, Vec<Circle>> = BTreeMap::new();
    for krate in repository.crates() {
        let source = format!("crates/{}/src/", krate.folder);
        let files = repository.files(|path| path.starts_with(&source) && path.ends_with(".rs"));
        for (folder, circles) in Modules::read(&source, files).circles() {
            found.insert(format!("{}/{}", krate.folder, folder.replace("::", "/")).trim_end_matches('/').to_owned(), circles);
        }
    }
    let left: BTreeMap<&str, usize> = LEFT.iter().copied().collect();
    let mut violations = vec![];
    let count = |circles: &Vec<Circle>| circles.iter().map(|circle| circle.modules.len()).sum::<usize>();
    for (folder, circles) in &found {
        let (count, left) = (count(circles), left.get(folder.as_str()).copied().unwrap_or(0));
        if count > left {
            let arrows = circles.iter().flat_map(|circle| &circle.arrows).map(|(from, to)| format!("{from} → {to}"));
            let arrows = arrows.collect::<Vec<_>>().join(", ");
            violations.push(format!("{folder}: {count} modules in circles, {left} before: {arrows}"));
        }
    }
    for (folder, left) in left {
        let count = found.get(folder).map_or(0, count);
        if count < left {
            violations.push(format!("{folder}: {count} modules in circles, {left} before: lower the number in `LEFT`"));
        }
    }
    hold("Modules of a crate form no circles: move what both need below both.", violations);
}

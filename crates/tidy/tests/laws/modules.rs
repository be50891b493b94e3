//! References between the modules of a crate go one way.

use broadloom_tidy::modules::{Circle, Modules};
use broadloom_tidy::{Repository, hold};
use std::collections::BTreeMap;

/// Modules in circles that are left, by crate and folder. A number may only fall.
const LEFT: &[(&str, usize)] = &[
    ("analysis", 2),
    ("bench", 8),
    ("bench/nesl", 2),
    ("cli", 7),
    ("cpu", 12),
    ("cpu/compile", 17),
    ("cuda", 12),
    ("cudart", 30),
    ("device", 5),
    ("device/cache", 3),
    ("device/private", 2),
    ("effect", 5),
    ("effect/graph", 2),
    ("effect/image", 2),
    ("eval", 7),
    ("eval/texture", 2),
    ("fakecuda", 4),
    ("filetest", 7),
    ("fuzzgen", 3),
    ("graph", 30),
    ("graph/text", 3),
    ("interp", 2),
    ("launch", 4),
    ("nesl", 9),
    ("nesl/run", 3),
    ("nesl/session", 4),
    ("nesl/vcode", 4),
    ("ptx", 3),
    ("ptx/builder", 3),
    ("scalar", 14),
    ("skeleton", 4),
    ("stream", 7),
    ("stream/compiled", 3),
    ("stream/eval", 5),
    ("stream/restructure", 11),
    ("stream/translate", 2),
    ("transform/linearise", 6),
];

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

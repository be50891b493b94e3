//! Modules of a crate and the references between them, read from text.
//!
//! A reference is a path that starts with `crate`, `self` or `super`, in a `use` or in code. It leads to the
//! deepest module that the path names; names that a module re-exports lead to the module that defines them.
//! A re-export itself is no reference. In the file of a folder, paths may also start with a module of the folder.
//! Unit tests at the end of a file are not read.

use crate::{File, rust};
use std::collections::{BTreeMap, BTreeSet};

/// Path of a module from the root of its crate.
type Name = Vec<String>;

/// References between the modules of a folder.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Modules of a folder of which every one reaches every other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// Names of the modules, sorted.
    pub modules: Vec<String>,
    /// References between them.
    pub arrows: Vec<(String, String)>,
}

/// Modules of a crate: those that are files.
#[derive(Debug)]
pub struct Modules {
    /// Code of each module, without comments, literals and unit tests.
    code: BTreeMap<Name, String>,
    /// Modules of the names that a module re-exports.
    exports: BTreeMap<(Name, String), Name>,
}

impl Modules {
    /// Reads the modules of a crate from the files of its folder `src`.
    pub fn read(source: &str, files: impl IntoIterator<Item = File>) -> Modules {
        let mut code = BTreeMap::new();
        for file in files {
            let Some(name) = file.path.strip_prefix(source).and_then(|path| path.strip_suffix(".rs")) else { continue };
            let name: Name =
                name.split('/').filter(|part| !matches!(*part, "" | "mod" | "lib" | "main")).map(str::to_owned).collect();
            let text = rust::code(&file.text);
            let tests = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
            code.insert(name, text[..tests].to_owned());
        }
        let mut modules = Modules { code, exports: BTreeMap::new() };
        // A name that is re-exported twice is known after the second pass.
        for _ in 0..3 {
            let exports = modules.code.keys().flat_map(|module| modules.exports_of(module)).collect();
            modules.exports = exports;
        }
        modules
    }

    fn exports_of(&self, module: &Name) -> Vec<((Name, String), Name)> {
        let code = &self.code[module];
        let mut exports = vec![];
        for at in rust::words(code, "use").filter(|at| is_public(&code[..*at])) {
            for path in tree(&code[at + "use".len()..]) {
                let target = self.resolve(module, &path);
                if let (Some(name), Some(target)) = (path.last(), target) {
                    exports.push(((module.clone(), name.clone()), target));
                }
            }
        }
        exports
    }

    /// Returns the module that a path leads to, seen from a module.
    fn resolve(&self, from: &Name, path: &[String]) -> Option<Name> {
        let mut module = from.clone();
        let (first, mut rest) = path.split_first()?;
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop()?;
            }
            // A path that starts with a module of this one.
            _ if self.code.contains_key(&[module.clone(), vec![first.clone()]].concat()) => rest = path,
            _ => return None,
        }
        for part in rest {
            if part == "super" {
                module.pop()?;
                continue;
            }
            let child = [module.clone(), vec![part.clone()]].concat();
            if self.code.contains_key(&child) {
                module = child;
            } else {
                return Some(self.exports.get(&(module.clone(), part.clone())).cloned().unwrap_or(module));
            }
        }
        Some(module)
    }

    /// Returns the modules that a module refers to.
    fn references(&self, module: &Name) -> BTreeSet<Name> {
        let code = &self.code[module];
        let children = self.code.keys().filter(|child| child.len() == module.len() + 1 && child.starts_with(module));
        let words = ["crate", "self", "super"].into_iter().chain(children.filter_map(|child| Some(child.last()?.as_str())));
        let starts = words.flat_map(|word| rust::words(code, word));
        let paths = starts.filter(|at| {
            code[*at..].trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_').starts_with("::")
        });
        let paths = paths.filter(|at| !code[..*at].ends_with("::") && !code[..*at].ends_with("(in "));
        let paths = paths.filter(|at| !is_reexport(&code[..*at]));
        paths.flat_map(|at| tree(&code[at..])).filter_map(|path| self.resolve(module, &path)).collect()
    }

    /// Returns the references between the modules of each folder. A folder counts as one module of the folder
    /// around it, and its own file as the module `mod` in it.
    fn arrows(&self) -> BTreeMap<Name, Arrows> {
        let mut arrows: BTreeMap<Name, Arrows> = BTreeMap::new();
        let own = "mod".to_owned();
        for from in self.code.keys() {
            if let Some((name, folder)) = from.split_last() {
                arrows.entry(folder.to_vec()).or_default().entry(name.clone()).or_default();
            }
            for to in self.references(from) {
                let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                let (one, other) = (from.get(common).unwrap_or(&own), to.get(common).unwrap_or(&own));
                if one != other {
                    let folder = arrows.entry(from[..common].to_vec()).or_default();
                    folder.entry(one.clone()).or_default().insert(other.clone());
                }
            }
        }
        arrows
    }

    /// Returns the circles among the modules of each folder, by the name of the folder.
    pub fn circles(&self) -> BTreeMap<String, Vec<Circle>> {
        let arrows = self.arrows();
        let circles = arrows.iter().map(|(folder, arrows)| (folder.join("::"), circles(arrows)));
        circles.filter(|(_, circles)| !circles.is_empty()).collect()
    }

    /// Returns the layers of each folder, the highest first, by the name of the folder. A module refers to
    /// modules of lower layers; references within a circle do not count.
    pub fn layers(&self) -> BTreeMap<String, Vec<Vec<String>>> {
        self.arrows().iter().map(|(folder, arrows)| (folder.join("::"), layers(arrows))).collect()
    }
}

/// Returns whether text ends with the word `use` of a re-export.
fn is_reexport(before: &str) -> bool {
    before.trim_end().strip_suffix("use").is_some_and(is_public)
}

fn is_public(before: &str) -> bool {
    let before = before.trim_end();
    before.ends_with("pub") || (before.ends_with(')') && before.rfind("pub(").is_some_and(|at| !before[at..].contains(';')))
}

/// Returns all paths of a `use` tree, or of the path at the start of code.
fn tree(code: &str) -> Vec<Name> {
    let mut paths = vec![];
    branch(code, &mut vec![], &mut paths);
    paths
}

/// Reads one branch of a tree and returns the rest of the code.
fn branch<'a>(code: &'a str, prefix: &mut Name, paths: &mut Vec<Name>) -> &'a str {
    let code = code.trim_start();
    let length = prefix.len();
    let rest = if let Some(mut list) = code.strip_prefix('{') {
        loop {
            list = list.trim_start();
            match list.as_bytes().first() {
                Some(b',') => list = &list[1..],
                Some(b'}') => break &list[1..],
                Some(b'{') => break list,
                _ => {
                    let next = branch(list, prefix, paths);
                    if next.len() == list.len() {
                        break list;
                    }
                    list = next;
                }
            }
        }
    } else {
        let end = code.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(code.len());
        let (word, rest) = code.split_at(end);
        if word != "self" || prefix.is_empty() {
            prefix.push(word.to_owned());
        }
        match rest.strip_prefix("::") {
            Some(next) if !next.starts_with('*') && !next.starts_with('<') => branch(next, prefix, paths),
            Some(next) => {
                paths.push(prefix.clone());
                next.trim_start_matches('*')
            }
            None => {
                paths.push(prefix.clone());
                // `name as other` is known by the first name.
                let other = rest.trim_start().strip_prefix("as ").map(str::trim_start);
                other.map_or(rest, |other| other.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_'))
            }
        }
    };
    prefix.truncate(length);
    rest
}

/// Returns modules by the longest chain of references that starts at them, the longest first.
fn layers(arrows: &Arrows) -> Vec<Vec<String>> {
    let circles = circles(arrows);
    let in_circle = |from, to| circles.iter().any(|circle| circle.modules.contains(from) && circle.modules.contains(to));
    let mut heights: BTreeMap<&String, usize> =
        arrows.iter().flat_map(|(from, to)| to.iter().chain([from])).map(|module| (module, 0)).collect();
    let mut settled = false;
    while !settled {
        settled = true;
        for (from, to) in arrows {
            let height = to.iter().filter(|to| !in_circle(from, to)).map(|to| heights[to] + 1).max().unwrap_or(0);
            settled &= heights.insert(from, height) == Some(height);
        }
    }
    let mut layers = vec![vec![]; heights.values().max().map_or(0, |height| height + 1)];
    for (module, height) in heights {
        layers[height].push(module.clone());
    }
    layers.reverse();
    layers
}

/// Returns the largest sets of two or more modules that all reach each other.
fn circles(arrows: &Arrows) -> Vec<Circle> {
    let reach = |start: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(module) = open.pop() {
            open.extend(arrows.get(module).into_iter().flatten().filter(|next| seen.insert((*next).clone())));
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|module| (module, reach(module))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, own) in reached.iter().filter(|(module, own)| own.contains(**module)) {
        let returns = |other: &&String| reached.get(other).is_some_and(|back| back.contains(*module));
        let modules: Vec<String> = own.iter().filter(returns).cloned().collect();
        if modules.len() > 1 {
            found.insert(modules);
        }
    }
    let circle = |modules: Vec<String>| {
        let inside =
            |from: &String| arrows[from].iter().filter(|to| modules.contains(to)).map(|to| (from.clone(), to.clone())).collect();
        let arrows: Vec<Vec<(String, String)>> = modules.iter().map(inside).collect();
        Circle { arrows: arrows.concat(), modules }
    };
    found.into_iter().map(circle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        Modules::read("src/", files.iter().map(|(path, text)| File { path: format!("src/{path}"), text: (*text).to_owned() }))
    }

    #[test]
    fn paths_of_a_tree() {
        let paths = tree("crate::{a::{self, B}, c::d as e, f::*}; crate::g");
        let paths: Vec<String> = paths.iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, ["crate::a", "crate::a::B", "crate::c::d", "crate::f"]);
    }

    #[test]
    fn circles_by_use_by_path_and_by_a_name_that_is_exported() {
        let found = modules(&[
            ("lib.rs", "mod a; mod b; mod c; mod d; pub(crate) use b::Thing;"),
            ("a.rs", "use crate::{Thing, c};"),
            ("b/mod.rs", "mod x; mod y; fn f() { crate::c::g() }"),
            ("b/x.rs", "use super::y::Y;"),
            ("b/y.rs", "fn f() { super::x::f() } #[cfg(test)]\nmod tests { use crate::a; }"),
            ("c.rs", "// use crate::d;\nuse crate::a::A;"),
            ("d.rs", "use crate::{a, b, c};"),
        ])
        .circles();
        assert_eq!(found[""].iter().map(|circle| &circle.modules).collect::<Vec<_>>(), [&["a", "b", "c"]]);
        let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(found["b"][0].arrows, [arrow("x", "y"), arrow("y", "x")]);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn circles_of_a_folder_and_its_own_file() {
        let found = modules(&[
            ("lib.rs", "mod a; mod b; pub use b::f;"),
            ("a/mod.rs", "mod x; use x::X; struct Y(X);"),
            ("a/x.rs", "use super::Y; struct X;"),
            ("b.rs", "use crate::a; fn f() {}"),
        ]);
        assert_eq!(found.circles().keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(found.circles()["a"][0].modules, ["mod", "x"]);
    }

    #[test]
    fn layers_have_no_circle() {
        let found = modules(&[
            ("lib.rs", ""),
            ("a.rs", "use super::{b, d};"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "pub struct C;"),
            ("d.rs", ""),
        ]);
        assert!(found.circles().is_empty());
        assert_eq!(found.layers()[""], [vec!["a"], vec!["b"], vec!["c", "d"]]);
    }
}

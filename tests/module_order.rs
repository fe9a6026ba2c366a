//! The modules are floors of a house: each uses only those below it. `src/lib.rs` lists them from the
//! bottom up, and adapters on the same floor do not know each other.

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::fs;
use std::path::{Path, PathBuf};

/// Adapters: what one of them needs of another goes through the floor above.
const ADAPTERS: [&str; 6] = ["hub", "telemetry", "cluster", "notify", "store", "trace"];

/// What a module must not know although it stands below.
const MUST_NOT_KNOW: [(&str, &[&str]); 5] = [
    ("hub", &["policy", "message"]),
    ("telemetry", &["policy", "message"]),
    ("cluster", &["policy", "message"]),
    ("notify", &["policy", "message"]),
    ("store", &["message"]),
];

/// What decisions must not touch: they are pure.
const IMPURE: [&str; 7] =
    ["tokio", "std::fs", "std::env", "std::net", "tracing::", "Timestamp::now", "Instant::now"];

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)
}

fn floors() -> Vec<String> {
    let lib = fs::read_to_string(source("lib.rs")).unwrap();
    let module = |line: &str| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_owned());
    lib.lines().filter_map(module).collect()
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files of a module, without comments and without tests.
fn code_of(module: &str) -> Vec<(PathBuf, String)> {
    let mut files = vec![source(&format!("{module}.rs"))];
    if source(module).is_dir() {
        files_below(&source(module), &mut files);
    }
    let is_test = |path: &PathBuf| path.ends_with("tests.rs") || path.iter().any(|part| part == "tests");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        Some((path, lines.collect::<Vec<_>>().join("\n")))
    };
    files.into_iter().filter(|path| !is_test(path)).filter_map(read).collect()
}

#[test]
fn a_module_uses_only_those_below_it() {
    let floors = floors();
    assert!(floors.len() >= 14, "the list in src/lib.rs was not understood: {floors:?}");
    for (height, module) in floors.iter().enumerate() {
        let forbidden =
            MUST_NOT_KNOW.iter().find(|(name, _)| name == module).map_or(&[][..], |(_, list)| *list);
        for (path, code) in code_of(module) {
            for (other_height, other) in floors.iter().enumerate() {
                let uses =
                    code.contains(&format!("crate::{other}::")) || code.contains(&format!("crate::{other};"));
                let siblings = ADAPTERS.contains(&module.as_str()) && ADAPTERS.contains(&other.as_str());
                let allowed = other_height <= height
                    && (module == other || !siblings)
                    && !forbidden.contains(&other.as_str());
                assert!(!uses || allowed, "{} must not use `{other}`", path.display());
            }
        }
    }
}

#[test]
fn decisions_touch_nothing_but_their_arguments() {
    for module in ["domain", "policy"] {
        for (path, code) in code_of(module) {
            for impure in IMPURE {
                assert!(!code.contains(impure), "{} mentions {impure}", path.display());
            }
        }
    }
}

#[test]
fn no_file_holds_more_than_a_reader_can() {
    for module in floors() {
        for (path, code) in code_of(&module) {
            let lines = code.lines().count();
            assert!(lines <= 300, "{} has {lines} lines: which second idea is in it?", path.display());
        }
    }
}

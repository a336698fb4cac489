//! The order of the modules and the rules of a source file, checked on the text of the sources.
//!
//! A module uses modules of lower layers only. Inside a layer an edge must be listed in
//! [`SAME_LAYER`]. Comments do not count; test code in `src` does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules from the bottom up.
const LAYERS: &[&[&str]] = &[
    &["error", "config", "telemetry", "runtime", "bitmap", "crash"],
    &["io", "cache"],
    &["table"],
    &["iceberg", "delta"],
    &["catalog", "scan", "write"],
    &["sql"],
    &["cluster"],
    &["server", "proto"],
    &["cli", "main"],
];

/// Edges inside a layer that are wanted: (user, used).
const SAME_LAYER: &[(&str, &str)] = &[
    // every module returns the crate's error
    ("config", "error"),
    ("telemetry", "error"),
    ("runtime", "error"),
    ("bitmap", "error"),
    ("telemetry", "config"),
    ("runtime", "config"),
    // reads go through the caches
    ("cache", "io"),
    ("io", "cache"),
    // a catalog hands tables to the engine as scannable providers
    ("catalog", "scan"),
    // a commit ends in the catalog
    ("write", "catalog"),
    // a delete takes in what was deleted before
    ("write", "scan"),
    // the service is generated code
    ("server", "proto"),
    ("main", "cli"),
];

/// Highest layer (index in [`LAYERS`]) that must not know the query engine.
const LAST_LAYER_WITHOUT_ENGINE: usize = 3;

/// Crates that only some modules name: (crate names, modules or files below `src` that may).
const RESTRICTED: &[(&[&str], &[&str])] = &[
    // sql/session empties the registry that the engine brings
    (&["object_store"], &["io", "sql/session"]),
    (&["tonic", "arrow_flight"], &["server", "proto", "cli/sql"]),
    (&["delta_kernel"], &["delta/kernel"]),
];

const MAX_LINES: usize = 600;

#[test]
fn modules_use_lower_layers_only() {
    let mut wrong = Vec::new();
    for file in sources() {
        let user = file.module();
        for (line, used) in file.crate_modules() {
            if used == user {
                continue;
            }
            let allowed = match (layer(&user), layer(&used)) {
                (Some(own), Some(other)) if own == other => SAME_LAYER.contains(&(user.as_str(), used.as_str())),
                (Some(own), Some(other)) => other < own,
                // `lib.rs` declares the modules and is in no layer
                (None, _) => user == "lib",
                (_, None) => false,
            };
            if !allowed {
                wrong.push(format!("{}:{line}: {user} uses {used}", file.name));
            }
        }
    }
    assert!(wrong.is_empty(), "edges against the layers:\n{}", wrong.join("\n"));
}

#[test]
fn every_module_has_a_layer() {
    let missing: BTreeSet<String> = sources()
        .iter()
        .map(Source::module)
        .filter(|m| m != "lib" && layer(m).is_none())
        .collect();
    assert!(missing.is_empty(), "modules without a layer: {missing:?}");
}

#[test]
fn the_engine_is_unknown_to_the_formats() {
    let mut wrong = Vec::new();
    for file in sources() {
        let below = layer(&file.module()).is_some_and(|l| l <= LAST_LAYER_WITHOUT_ENGINE);
        if below {
            wrong.extend(file.lines_naming(|word| word == "datafusion" || word.starts_with("datafusion_")));
        }
    }
    assert!(
        wrong.is_empty(),
        "datafusion below layer {}:\n{}",
        LAST_LAYER_WITHOUT_ENGINE + 1,
        wrong.join("\n")
    );
}

#[test]
fn protocol_and_store_crates_stay_in_their_modules() {
    let mut wrong = Vec::new();
    for file in sources() {
        for (crates, places) in RESTRICTED {
            let inside = places.iter().any(|place| {
                let rest = file.name.strip_prefix("src/").and_then(|n| n.strip_prefix(place));
                rest.is_some_and(|r| r.starts_with(['/', '.']))
            });
            if !inside {
                wrong.extend(file.lines_naming(|word| crates.contains(&word)));
            }
        }
    }
    assert!(wrong.is_empty(), "named outside of their modules:\n{}", wrong.join("\n"));
}

#[test]
fn every_source_opens_with_its_purpose() {
    let bare: Vec<String> = sources()
        .iter()
        .filter(|f| !f.text.starts_with("//!"))
        .map(|f| f.name.clone())
        .collect();
    assert!(bare.is_empty(), "no `//!` at the top of {bare:?}");
}

#[test]
fn every_rule_that_a_comment_names_is_told() {
    let told = std::fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let told: BTreeSet<&str> = words_with_hyphens(&told).filter(|word| is_rule_id(word)).collect();
    let mut missing = BTreeSet::new();
    for file in sources() {
        let named = words_with_hyphens(&file.text).filter(|word| is_rule_id(word) && !told.contains(word));
        missing.extend(named.map(|id| format!("{id} ({})", file.name)));
    }
    assert!(missing.is_empty(), "not in docs/requirements.md: {missing:?}");
}

fn words_with_hyphens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
}

/// `IC-8`, `SE-20`.
fn is_rule_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(group, number)| {
        ["AT", "IC", "INV", "IT", "OP", "SE", "T"].contains(&group) && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    })
}

#[test]
fn no_source_is_too_long() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|f| f.module() != "proto" && f.text.lines().count() > MAX_LINES)
        .map(|f| format!("{} ({} lines)", f.name, f.text.lines().count()))
        .collect();
    assert!(long.is_empty(), "over {MAX_LINES} lines: {long:?}");
}

#[test]
fn no_file_names_a_path_of_the_machine_it_was_made_on() {
    // written in pieces, so that this file does not name them
    let forbidden = [concat!("/ro", "ot/"), concat!("/wo", "rk/")];
    let mut wrong = Vec::new();
    for path in tracked_files() {
        let Ok(bytes) = std::fs::read(root().join(&path)) else { continue };
        for needle in forbidden {
            if bytes.windows(needle.len()).any(|w| w == needle.as_bytes()) {
                wrong.push(format!("{} names {needle}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_test_file_is_compiled() {
    let main = std::fs::read_to_string(root().join("tests/it/main.rs")).unwrap();
    let declared: BTreeSet<&str> = main.lines().filter_map(|l| l.strip_prefix("mod ")?.strip_suffix(';')).collect();
    let forgotten: Vec<String> = std::fs::read_dir(root().join("tests/it"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap().trim_end_matches(".rs").to_owned())
        .filter(|name| name != "main" && !declared.contains(name.as_str()))
        .collect();
    assert!(forgotten.is_empty(), "not declared in tests/it/main.rs: {forgotten:?}");
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

struct Source {
    /// Path below the project, with slashes.
    name: String,
    text: String,
}

impl Source {
    /// First path segment below `src`, without extension.
    fn module(&self) -> String {
        let below = self.name.strip_prefix("src/").unwrap_or(&self.name);
        let first = below.split('/').next().unwrap_or(below);
        first.trim_end_matches(".rs").to_owned()
    }

    /// (line number, text without comment)
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(i, line)| {
            let code = match line.find("//") {
                // not the slashes of a URL
                Some(at) if !line[..at].ends_with(':') => &line[..at],
                _ => line,
            };
            (i + 1, code)
        })
    }

    /// Modules named as `crate::x`, or `sandur::x` in the binary, also in groups over several lines.
    fn crate_modules(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut group = None;
        for (number, line) in self.code() {
            let mut rest = line;
            if group.is_some() {
                take_group(rest, number, &mut group, &mut found);
            }
            while let Some((start, prefix)) = ["crate::", "sandur::"].iter().filter_map(|p| Some((rest.find(p)?, *p))).min() {
                let own = prefix == "crate::" || self.name == "src/main.rs";
                let whole_word = !rest[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
                rest = &rest[start + prefix.len()..];
                if !own || !whole_word {
                    continue;
                }
                if let Some(inner) = rest.strip_prefix('{') {
                    group = Some(0);
                    take_group(inner, number, &mut group, &mut found);
                } else {
                    push_module(rest, number, &mut found);
                }
            }
        }
        found
    }

    /// Lines with a path that starts with a wanted crate.
    fn lines_naming(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let starts_path = |line: &str| {
            line.match_indices("::").any(|(at, _)| {
                let crate_name = last_word(&line[..at]);
                let before = &line[..at - crate_name.len()];
                // `other::tonic::x` names no crate, `::tonic::x` does
                let inside = before
                    .strip_suffix("::")
                    .is_some_and(|b| !last_word(b).is_empty() || b.ends_with('>'));
                !inside && wanted(crate_name)
            })
        };
        let imports = |line: &str| {
            let line = line.trim_start();
            let import = line.strip_prefix("use ").or_else(|| line.strip_prefix("pub use "));
            import.is_some_and(|path| wanted(first_word(path)))
        };
        self.code()
            .filter(|(_, line)| starts_path(line) || imports(line))
            .map(|(number, line)| format!("{}:{number}: {}", self.name, line.trim()))
            .collect()
    }
}

/// Reads `a::x, b::{c, d}, e}` of `use crate::{...}`; `depth` counts inner braces and is `None` behind the last.
fn take_group(text: &str, number: usize, depth: &mut Option<usize>, found: &mut Vec<(usize, String)>) {
    let mut at_start = true;
    for (i, c) in text.char_indices() {
        let Some(level) = *depth else { return };
        match c {
            '{' => *depth = Some(level + 1),
            '}' => *depth = level.checked_sub(1),
            ',' => at_start = true,
            c if c.is_whitespace() => {}
            _ => {
                if at_start && level == 0 {
                    push_module(&text[i..], number, found);
                }
                at_start = false;
            }
        }
    }
}

fn push_module(text: &str, number: usize, found: &mut Vec<(usize, String)>) {
    let word = first_word(text);
    // macros and items at the crate root are no modules
    if word.starts_with(|c: char| c.is_ascii_lowercase()) && word != "self" {
        found.push((number, word.to_owned()));
    }
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

fn last_word(text: &str) -> &str {
    let start = text
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |i| i + text[i..].chars().next().map_or(1, char::len_utf8));
    &text[start..]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    walk(&root().join("src"), &mut paths);
    paths.sort();
    paths
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "rs"))
        .map(|path| Source {
            name: path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(),
            text: std::fs::read_to_string(&path).unwrap(),
        })
        .collect()
}

/// Files under version control; where there is no repository, everything but build output.
fn tracked_files() -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    if let Ok(output) = listed
        && output.status.success()
        && !output.stdout.is_empty()
    {
        let names = output.stdout.split(|b| *b == 0).filter(|n| !n.is_empty());
        return names.map(|n| PathBuf::from(String::from_utf8(n.to_vec()).unwrap())).collect();
    }
    let mut all = Vec::new();
    walk(root(), &mut all);
    let relative = all.iter().map(|p| p.strip_prefix(root()).unwrap().to_owned());
    relative.filter(|p| !p.starts_with("target") && !p.starts_with(".git")).collect()
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with(".git") {
                walk(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

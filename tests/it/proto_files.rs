//! The checked-in messages are those of the `.proto` files: same names, numbers, types and labels.

use std::collections::BTreeSet;
use std::path::Path;

/// `Message.field = number: type`, oneof members under their message.
fn of_proto(text: &str) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let mut open: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let words: Vec<&str> = line.trim_end_matches([';', '{']).split_whitespace().collect();
        match words.as_slice() {
            [kind @ ("message" | "oneof" | "enum"), name] if line.ends_with('{') => open.push(((*kind).to_owned(), (*name).to_owned())),
            ["}"] => {
                open.pop();
            }
            [.., name, "=", number] if !open.is_empty() => {
                let message = open.iter().rev().find(|(kind, _)| kind == "message").map(|(_, name)| name.as_str());
                let inside = open.last().map(|(kind, _)| kind.as_str()).unwrap();
                let label = words
                    .first()
                    .filter(|w| ["optional", "repeated"].contains(*w))
                    .copied()
                    .unwrap_or(inside);
                let of = words[words.len().saturating_sub(4)..]
                    .first()
                    .filter(|_| words.len() > 3)
                    .copied()
                    .unwrap_or("value");
                fields.insert(format!(
                    "{}.{} = {number}: {} {}",
                    message.unwrap(),
                    plain(name),
                    label_of(label),
                    kind_of(of)
                ));
            }
            _ => {}
        }
    }
    fields
}

/// The same of the generated code.
fn of_rust(text: &str) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let (mut message, mut inside, mut attribute) = (String::new(), "message", String::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("pub struct ") {
            (message, inside) = (name.trim_end_matches(" {").to_owned(), "message");
        } else if let Some(module) = line.strip_prefix("pub mod ") {
            message = camel(module.trim_end_matches(" {"));
        } else if line.starts_with("pub enum ") {
            inside = if attribute.contains("Enumeration") { "enum" } else { "oneof" };
            attribute.clear();
        } else if line.starts_with("#[prost(") || line.starts_with("#[derive(") {
            attribute = line.to_owned();
        } else if inside == "enum" && line.contains(" = ") {
            let (name, number) = line.trim_end_matches(',').split_once(" = ").unwrap();
            fields.insert(format!("{message}.{} = {number}: enum value", plain(name)));
        } else if let Some(prost) = attribute.strip_prefix("#[prost(").and_then(|a| a.strip_suffix(")]")) {
            let name = line.trim_start_matches("pub ").split([':', '(']).next().unwrap_or_default();
            let number = prost.rsplit("tag = \"").next().unwrap_or_default().trim_end_matches('"');
            if !prost.starts_with("oneof") {
                let label = ["optional", "repeated"]
                    .into_iter()
                    .find(|l| prost.split(", ").any(|word| word == *l));
                let of = prost.split([',', ' ']).next().unwrap_or_default();
                let of = if of.starts_with("enumeration") { "message" } else { of };
                // A message is always optional; that is no label in the file.
                let label = label.filter(|label| of != "message" || *label == "repeated").unwrap_or(inside);
                fields.insert(format!("{message}.{} = {number}: {} {of}", plain(name), label_of(label)));
            }
            attribute.clear();
        }
    }
    fields
}

fn label_of(label: &str) -> &str {
    if label == "message" { "single" } else { label }
}

/// A scalar type, or `message` for a type of the files themselves.
fn kind_of(of: &str) -> &str {
    if of == "value" || of.chars().next().is_some_and(char::is_lowercase) {
        of
    } else {
        "message"
    }
}

/// Without case and underscores; values of enums without the enum's name.
fn plain(name: &str) -> String {
    let name = name.strip_prefix("STATE_").unwrap_or(name);
    name.replace('_', "").to_lowercase()
}

fn camel(name: &str) -> String {
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(upper).collect()
}

#[test]
fn checked_in_messages_are_those_of_the_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = 0;
    for entry in std::fs::read_dir(root.join("proto/sandur/v1")).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let proto = of_proto(&std::fs::read_to_string(&path).unwrap());
        let rust = of_rust(&std::fs::read_to_string(root.join(format!("src/proto/{stem}.rs"))).unwrap());
        assert!(!proto.is_empty(), "{stem}");
        let differ: Vec<&String> = proto.symmetric_difference(&rust).collect();
        assert!(differ.is_empty(), "{stem}: {differ:#?}");
        files += 1;
    }
    assert_eq!(files, 2);
}

/// Every field and message says what it is.
#[test]
fn every_message_for_clients_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("proto/sandur/v1/change.proto")).unwrap();
    let mut before = "";
    for line in text.lines().map(str::trim) {
        if line.starts_with("message ") {
            assert!(before.starts_with("//"), "{line}");
        }
        before = line;
    }
}

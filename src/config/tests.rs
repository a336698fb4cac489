//! Secrets, sizes and paths; the whole configuration is tested in `tests/it/config.rs`.

use super::section::{Origins, Section};
use super::{Config, Secret, absolute_location};

const CANARY: &str = "canary-7d1f";

#[test]
fn a_secret_has_no_printed_form() {
    let secret = Secret::new(CANARY);
    assert_eq!(
        format!("{secret} {secret:?} {:?}", Some(&secret)),
        "[redacted] [redacted] Some([redacted])"
    );
    assert_eq!(secret.expose(), CANARY);
}

#[test]
fn a_secret_is_text_or_a_variable_or_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, format!("{CANARY}\r\n")).unwrap();
    let origins = Origins::default();
    let read = |text: &str| Section::new("a".into(), text.parse().unwrap(), &origins).secret("key");

    assert_eq!(read(&format!("key = '{CANARY}'")).unwrap().unwrap().expose(), CANARY);
    assert_eq!(read(&format!("key.file = '{}'", path.display())).unwrap().unwrap().expose(), CANARY);
    assert_eq!(
        read("key.env = 'PATH'").unwrap().map(|s| s.expose().to_owned()),
        std::env::var("PATH").ok()
    );
    assert!(read("other = 1").unwrap().is_none());
}

#[test]
fn a_bad_secret_names_the_key_and_not_the_value() {
    let origins = Origins::default();
    for text in [
        format!("key = ['{CANARY}']"),
        format!("key = {{ env = 'UNSET_VARIABLE_OF_TEST', file = '{CANARY}' }}"),
        format!("key.value = '{CANARY}'"),
        "key.env = 'UNSET_VARIABLE_OF_TEST'".into(),
        "key.file = '/nowhere/at/all'".into(),
        "key = ''".into(),
    ] {
        let error = Section::new("a".into(), text.parse().unwrap(), &origins).secret("key").unwrap_err();
        assert!(error.to_string().contains("`a.key`"), "{error}");
        assert!(!error.to_string().contains(CANARY), "{error}");
    }
}

#[test]
fn sizes_have_binary_and_decimal_units() {
    for (text, bytes) in [
        ("512MiB", 536_870_912),
        ("12GiB", 12_884_901_888),
        ("64kib", 65_536),
        ("1 TiB", 1_099_511_627_776),
        ("10MB", 10_000_000),
        ("17", 17),
        ("17B", 17),
        ("0", 0),
    ] {
        let config = Config::parse(Some(("f", &format!("[cache]\nmetadata = '{text}'"))), []).unwrap();
        assert_eq!(config.cache.metadata, bytes, "{text}");
    }
    for text in [
        "''",
        "'MiB'",
        "'1.5GiB'",
        "'-1'",
        "-1",
        "'12 apples'",
        "'99999999999TiB'",
        "true",
        "1.0",
    ] {
        assert!(
            Config::parse(Some(("f", &format!("[cache]\nmetadata = {text}"))), []).is_err(),
            "{text}"
        );
    }
}

#[test]
fn relative_paths_start_at_the_working_directory() {
    let here = std::env::current_dir().unwrap();
    let here = here.to_str().unwrap();
    assert_eq!(absolute_location("a/b").unwrap(), format!("{here}/a/b"));
    assert_eq!(absolute_location("./a/./b/").unwrap(), format!("{here}/a/b/"));
    assert_eq!(absolute_location("src/../a").unwrap(), format!("{here}/a"));
    assert_eq!(absolute_location("/x/../../y").unwrap(), "/y");
    assert_eq!(absolute_location("/").unwrap(), "/");
    assert_eq!(absolute_location("s3://b/../k").unwrap(), "s3://b/../k");
    assert!(absolute_location("").is_err());
}

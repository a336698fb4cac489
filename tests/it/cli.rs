//! The command line through the built binary: exit codes, and where output goes.

use std::path::Path;
use std::process::{Command, Output};

fn sandur(args: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandur"));
    command
        .args(args)
        .current_dir(dir)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &[][..],
        &["unknown"],
        &["serve", "--unknown"],
        &["serve", "--listen", "nowhere"],
        &["serve", "--listen", "127.0.0.1"],
        &["serve", "./missing"],
        &["serve", "s3://bucket/orders"],
        &["sql", "-c", "SELECT 1", "-f", "file"],
        &["sql", "--format", "xml"],
        &["sql", "--url", "127.0.0.1:1", "-c", "SELECT 1"],
        &["sql", "--url", "grpc+tls://127.0.0.1:1", "-c", "SELECT 1"],
        &["sql", "-c", " ; "],
        &["sql", "--format", "arrow", "-c", "SELECT 1; SELECT 2"],
        &["table"],
        &["table", "inspect"],
        &["check-config"],
    ] {
        let out = sandur(args, dir.path());
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", stderr(&out));
        assert!(out.stdout.is_empty() && !out.stderr.is_empty(), "{args:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a refused command made files");
}

#[test]
fn failed_work_is_exit_code_1_and_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.toml"), "[server]\nport = 1").unwrap();
    std::fs::write(dir.path().join("open.toml"), "[server]\nlisten = '0.0.0.0:0'").unwrap();
    for (args, says) in [
        (&["check-config", "missing.toml"][..], "does not exist"),
        (&["check-config", "bad.toml"], "`server.port`"),
        (&["serve", "--config", "bad.toml"], "`server.port`"),
        (&["serve", "--config", "open.toml"], "loopback"),
        (&["sql", "-f", "missing.sql"], "cannot read the file"),
        // a port that nothing listens on
        (&["sql", "--url", "grpc://127.0.0.1:1", "-c", "SELECT 1"], "cannot reach a server"),
        (&["table", "inspect", "./missing"], "no table here"),
        (&["table", "files", "a.b.c"], "no table here"),
    ] {
        let out = sandur(args, dir.path());
        assert_eq!(out.status.code(), Some(1), "{args:?}: {}", stderr(&out));
        assert!(out.stdout.is_empty(), "{args:?}");
        let message = stderr(&out);
        assert!(message.starts_with("error: ") && message.contains(says), "{args:?} says {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["--help"][..],
        &["--version"],
        &["serve", "--help"],
        &["sql", "-h"],
        &["table", "inspect", "--help"],
    ] {
        let out = sandur(args, dir.path());
        assert!(out.status.success() && !out.stdout.is_empty() && out.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn addresses_of_other_machines_are_refused_whatever_the_flags() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["serve", "--listen", "0.0.0.0:0"][..],
        &["serve", "--listen", "0.0.0.0:0", "--allow-insecure"],
    ] {
        let out = sandur(args, dir.path());
        assert_eq!(out.status.code(), Some(2));
        let message = stderr(&out);
        assert!(message.contains("loopback"), "{message}");
        assert_eq!(message.contains("not honoured"), args.contains(&"--allow-insecure"), "{message}");
    }
    assert!(!dir.path().join("warehouse").exists());
}

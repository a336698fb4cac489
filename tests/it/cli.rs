//! The command line through the built binary: exit codes, and where output goes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

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

/// A server with what it printed up to `ready`; killed when a test fails.
struct Served {
    process: Child,
    printed: Vec<String>,
}

impl Served {
    fn start(args: &[&str], dir: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_sandur"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(dir.join("server.log")).unwrap())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let printed: Vec<String> = lines.map(Result::unwrap).take_while(|line| line != "ready").collect();
        assert!(process.try_wait().unwrap().is_none(), "the server has ended");
        Self { process, printed }
    }

    fn url(&self) -> &str {
        let words = self.printed.iter().flat_map(|line| line.split(' '));
        words.skip_while(|word| *word != "--url").nth(1).unwrap()
    }

    /// Tells the server to stop and gives its exit code.
    fn stop(mut self, signal: &str) -> Option<i32> {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_sample_is_listed_queried_and_laid_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Served::start(&["--sample"], dir.path());
    let text = server.printed.join("\n");
    let counts = |table: &str| {
        let line = server.printed.iter().find(|line| line.starts_with(table)).unwrap();
        let numbers: Vec<&str> = line.split_whitespace().filter(|word| word.parse::<u32>().is_ok()).collect();
        numbers.join(" ")
    };
    assert_eq!(counts("iceberg.sample.orders "), "50 0", "{text}");
    assert_eq!(counts("iceberg.sample.customers "), "23 4", "{text}");
    assert_eq!(counts("iceberg.sample.measurements "), "55 3", "{text}");
    assert_eq!(counts("delta.sample.inventory "), "36 8", "{text}");

    let query = |args: &[&str]| sandur(&[&["sql", "--url", server.url()], args].concat(), dir.path());
    let out = query(&[
        "--format",
        "csv",
        "-c",
        "SELECT id, city FROM iceberg.sample.customers ORDER BY id LIMIT 2",
    ]);
    assert_eq!(
        String::from_utf8_lossy(&out.stdout),
        "id,city\n1,Istanbul\n2,Berlin\n",
        "{}",
        stderr(&out)
    );
    let out = query(&["--format", "json", "-c", "SELECT 1 AS a, NULL AS b; SELECT 'x' AS c;"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "{\"a\":1,\"b\":null}\n{\"c\":\"x\"}\n");
    let out = query(&["-c", "SELECT chr(27) AS \"esc\""]);
    assert_eq!(String::from_utf8_lossy(&out.stdout).lines().nth(3), Some("| \\u{1b} |"));
    assert!(stderr(&out).starts_with("(1 row, "), "{}", stderr(&out));
    let out = query(&["-c", "\\d"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("| measurements |"));
    let out = query(&["-c", "SELECT nope FROM iceberg.sample.orders"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        stderr(&out).contains("nope") && stderr(&out).lines().count() == 1,
        "{}",
        stderr(&out)
    );
    assert_eq!(server.stop("-TERM"), Some(0));

    let before = modified(&dir.path().join("warehouse"));
    let server = Served::start(&["--sample"], dir.path());
    assert_eq!(modified(&dir.path().join("warehouse")), before);
    assert_eq!(server.stop("-INT"), Some(0));
}

/// Files below a folder with the time they were last written, without what an open catalog keeps beside its file.
fn modified(folder: &Path) -> Vec<(std::path::PathBuf, std::time::SystemTime)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(modified(&path));
        } else if !path.file_name().unwrap().to_str().unwrap().starts_with("catalog.db-") && path.extension().unwrap() != "sandur-lock" {
            out.push((path.clone(), path.metadata().unwrap().modified().unwrap()));
        }
    }
    out.sort();
    out
}

#[test]
fn table_commands_read_metadata_without_a_server() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample");
    let golden = |case: &str| format!("../tests/golden/{case}/table");
    let show = |command: &str, table: &str| {
        let out = sandur(&["table", command, table], &sample);
        assert!(out.status.success(), "{}", stderr(&out));
        String::from_utf8(out.stdout).unwrap()
    };
    let text = show("inspect", "./customers");
    for line in [
        "format                 iceberg v2",
        "data files             2",
        "rows in data files     27",
        "position delete files  1 with 3 positions",
        "equality delete files  1 with 1 key",
        "  since  date",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
    let text = show("inspect", &(golden("sample_measurements") + "/metadata/v4.metadata.json"));
    assert!(
        text.contains("deletion vectors       1 with 5 rows") && text.contains("rows deleted           5"),
        "{text}"
    );
    assert!(show("inspect", &golden("sample_orders")).contains("partitioned by         day(ordered_at)"));
    let text = show("files", "customers");
    assert!(text.lines().any(|l| l.starts_with("24 ") && l.contains("3 in 1 file")), "{text}");
    let text = show("history", "customers");
    let operations: Vec<&str> = text.lines().skip(1).filter_map(|l| l.split_whitespace().nth(4)).collect();
    assert_eq!(operations, ["append", "overwrite", "delete"]);
    let snapshot = text.lines().nth(1).unwrap().split_whitespace().nth(2).unwrap().to_owned();

    let with = |more: &[&str]| {
        let out = sandur(&[&["table", "inspect", "customers"], more].concat(), &sample);
        assert!(out.status.success(), "{}", stderr(&out));
        String::from_utf8(out.stdout).unwrap()
    };
    assert!(with(&["--as-of", &snapshot]).contains("position delete files  0\n"));
    let text = with(&["--metadata", "delete_files"]);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.starts_with("content  file_path ") && text.contains("equality_ids"), "{text}");
    assert_eq!(with(&["--metadata", "delete_files", "--as-of", &snapshot]).lines().count(), 1);
    assert!(with(&["--metadata", "refs"]).contains("main  BRANCH"));
    for wrong in [
        ["files", "--as-of", "nope"],
        ["history", "--as-of", "1"],
        ["inspect", "--metadata", "nope"],
    ] {
        let out = sandur(&["table", wrong[0], "customers", wrong[1], wrong[2]], &sample);
        assert!(!out.status.success(), "{wrong:?}");
    }

    let out = sandur(&["table", "inspect", "."], &sample);
    assert!(stderr(&out).contains("folder of tables"), "{}", stderr(&out));
}

#[test]
fn a_table_is_found_by_name_in_a_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample");
    let config = format!("[catalog.lake]\ntype = 'directory'\npath = {:?}", sample.to_str().unwrap());
    std::fs::write(dir.path().join("c.toml"), config).unwrap();
    let out = sandur(&["table", "inspect", "LAKE.default.customers", "--config", "c.toml"], dir.path());
    assert!(
        String::from_utf8_lossy(&out.stdout).starts_with("table                  lake.default.customers\n"),
        "{}",
        stderr(&out)
    );
    let out = sandur(&["table", "inspect", "lake.default.nothing", "--config", "c.toml"], dir.path());
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).contains("does not exist"), "{}", stderr(&out));
    let out = sandur(&["table", "inspect", "customers", "--config", "c.toml"], dir.path());
    assert_eq!(out.status.code(), Some(2));
}

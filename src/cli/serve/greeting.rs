//! What `sandur serve` prints before `ready`: one line each to paste for every kind of client.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Names the jars of sqlline and the driver, joined with `:`; set by who runs the server for others.
const CLASSPATH_VARIABLE: &str = "SANDUR_JDBC_CLASSPATH";

/// Names a Python that has the ADBC driver and pyiceberg; set by who runs the server for others.
const PYTHON_VARIABLE: &str = "SANDUR_PYTHON";

/// Used when nothing says where the jars are.
const CLASSPATH_PLACEHOLDER: &str = "/path/to/sqlline-1.12.0-jar-with-dependencies.jar:/path/to/flight-sql-jdbc-driver-18.3.0.jar";

/// The lines for a server at `address`; `sql` has no quotes in it.
pub(super) fn client_lines(address: SocketAddr, sql: &str) -> [String; 3] {
    let program = program_name(std::env::current_exe().ok(), std::env::var_os("PATH").as_deref());
    let classpath = named(CLASSPATH_VARIABLE).unwrap_or_else(|| CLASSPATH_PLACEHOLDER.to_owned());
    lines(address, sql, &program, &python(), &classpath)
}

/// The line that reads a table's first rows with pyiceberg, from the catalog's own SQLite file and past the server.
/// `table` (schema, name, column to sort by) has no quotes in it.
pub(super) fn pyiceberg_line(database: &str, table: [&str; 3]) -> String {
    let [schema, name, column] = table;
    // The path is an argument: whatever is in it, Python does not read it as code.
    format!(
        "{} -c \"import sys; from pyiceberg.catalog.sql import SqlCatalog; \
         t = SqlCatalog('iceberg', uri='sqlite:///' + sys.argv[1]).load_table('{schema}.{name}'); \
         print(*t.scan().to_arrow().sort_by('{column}').slice(0, 5).to_pylist(), sep=chr(10))\" {}",
        shell_word(&python()),
        shell_word(database)
    )
}

fn named(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

fn python() -> String {
    named(PYTHON_VARIABLE).unwrap_or_else(|| "python3".to_owned())
}

fn lines(address: SocketAddr, sql: &str, program: &str, python: &str, classpath: &str) -> [String; 3] {
    let (program, python, classpath) = (shell_word(program), shell_word(python), shell_word(classpath));
    [
        format!("{program} sql --url grpc://{address} -c '{sql}'"),
        format!(
            "{python} -c \"import adbc_driver_flightsql.dbapi as flight_sql; c = flight_sql.connect('grpc://{address}', autocommit=True); \
             k = c.cursor(); k.execute('{sql}'); print(*k.fetchall(), sep=chr(10)); k.close(); c.close()\""
        ),
        format!(
            "java --add-opens=java.base/java.nio=ALL-UNNAMED -cp {classpath} sqlline.SqlLine \
             -u 'jdbc:arrow-flight-sql://{address}/?useEncryption=false' -n '' -p '' --outputformat=csv -e '{sql}'"
        ),
    ]
}

/// `sandur` where a shell finds this very program by that name, else the program's path.
fn program_name(running: Option<PathBuf>, path: Option<&OsStr>) -> String {
    let Some(running) = running else {
        return "sandur".to_owned();
    };
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let found = path.and_then(|path| {
        std::env::split_paths(path)
            .map(|folder| folder.join("sandur"))
            .find(|p| p.is_file())
    });
    match found {
        Some(found) if real(&found) == real(&running) => "sandur".to_owned(),
        _ => running.display().to_string(),
    }
}

/// `text` as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_can_be_pasted_as_they_are() {
        let [shell, python, jdbc] = lines(
            "127.0.0.1:99".parse().unwrap(),
            "SELECT 1",
            "/opt/my tools/sandur",
            "/opt/venv/bin/python",
            "a.jar:b.jar",
        );
        assert_eq!(shell, "'/opt/my tools/sandur' sql --url grpc://127.0.0.1:99 -c 'SELECT 1'");
        assert!(
            python.starts_with("/opt/venv/bin/python -c \"import adbc_driver_flightsql.dbapi")
                && python.contains("connect('grpc://127.0.0.1:99', ")
        );
        assert!(python.contains("execute('SELECT 1')") && python.ends_with('"'));
        assert_eq!(
            jdbc,
            "java --add-opens=java.base/java.nio=ALL-UNNAMED -cp a.jar:b.jar sqlline.SqlLine \
             -u 'jdbc:arrow-flight-sql://127.0.0.1:99/?useEncryption=false' -n '' -p '' --outputformat=csv -e 'SELECT 1'"
        );
    }

    #[test]
    fn the_program_is_named_short_only_where_the_shell_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("sandur");
        std::fs::write(&program, "").unwrap();
        let path = |folder: &Path| Some(folder.as_os_str().to_owned());
        assert_eq!(program_name(Some(program.clone()), path(dir.path()).as_deref()), "sandur");
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(
            program_name(Some(program.clone()), path(elsewhere.path()).as_deref()),
            program.display().to_string()
        );
        std::fs::write(elsewhere.path().join("sandur"), "").unwrap();
        assert_eq!(
            program_name(Some(program.clone()), path(elsewhere.path()).as_deref()),
            program.display().to_string()
        );
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}

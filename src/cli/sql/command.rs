//! Where statements come from, and running them one after the other.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::time::Instant;

use super::super::args::{Format, SqlArgs};
use super::super::output::{Out, escape_control};
use super::super::run::{Failure, complain, note};
use super::client::{Client, Rows, endpoint_of};
use super::print::Printer;
use super::split::split;
use crate::error::Error;
use crate::proto::change::ChangeResult;

const HELP: &str = "statements end with `;`\n\\d        list tables\n\\d TABLE  describe a table\n\\q        quit";

/// Runs `sandur sql`.
pub(in super::super) async fn sql(args: SqlArgs) -> Result<(), Failure> {
    let address = endpoint_of(&args.url).map_err(Failure::Usage)?;
    let mut out = Out::new();
    if args.format == Format::Arrow && out.is_terminal() {
        return Err(Failure::Usage(Error::invalid(
            "arrow output is binary: redirect it to a file or pipe",
        )));
    }
    let text = match (&args.command, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) if file.as_os_str() != "-" => read_file(file)?,
        (None, None) if io::stdin().is_terminal() => {
            let client = Client::connect(&address).await?;
            return shell(client, &mut out, args.format).await;
        }
        (None, _) => read_stdin()?,
    };
    let commands = commands_of(&text);
    if commands.is_empty() {
        return Err(Failure::Usage(Error::invalid("there is no statement to run")));
    }
    if args.format == Format::Arrow && commands.len() > 1 {
        return Err(Failure::Usage(Error::invalid("arrow output holds the result of one statement")));
    }
    let mut client = Client::connect(&address).await?;
    for command in commands {
        run(&mut client, &mut out, args.format, &command).await?;
    }
    Ok(())
}

fn read_file(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|e| Failure::Work(Error::not_found("cannot read the file").with("file", file.display()).with_source(e)))
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Failure::Work(Error::invalid("cannot read statements from stdin").with_source(e)))?;
    Ok(text)
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Command {
    Statement(String),
    ListTables,
    Describe(String),
    Help,
    Quit,
}

/// Statements of a text; the last needs no semicolon. A text that starts with a backslash is one command.
fn commands_of(text: &str) -> Vec<Command> {
    if let Some(command) = backslash_command(text) {
        return vec![command];
    }
    let (mut statements, rest) = split(text);
    if !rest.is_empty() {
        statements.push(rest.trim().to_owned());
    }
    statements.into_iter().map(Command::Statement).collect()
}

fn backslash_command(line: &str) -> Option<Command> {
    let line = line.trim().strip_prefix('\\')?;
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim().trim_end_matches(';').trim_end();
    Some(match (name.trim_end_matches(';'), argument) {
        ("d", "") => Command::ListTables,
        ("d", table) => Command::Describe(table.to_owned()),
        ("q", _) => Command::Quit,
        _ => Command::Help,
    })
}

async fn run(client: &mut Client, out: &mut Out, format: Format, command: &Command) -> Result<(), Failure> {
    let started = Instant::now();
    let rows = match command {
        Command::Statement(sql) => client.query(sql).await?,
        Command::ListTables => client.tables().await?,
        Command::Describe(table) => client.query(&format!("DESCRIBE {table}")).await?,
        Command::Help => {
            note(HELP);
            return Ok(());
        }
        Command::Quit => return Ok(()),
    };
    if let Some(change) = rows.change() {
        if format == Format::Table {
            note(&summary(&change, started.elapsed().as_millis()));
        }
        return Ok(());
    }
    let count = print(client, out, format, rows).await?;
    if format == Format::Table {
        let plural = if count == 1 { "" } else { "s" };
        note(&format!("({count} row{plural}, {} ms)", started.elapsed().as_millis()));
    }
    Ok(())
}

/// One line about what a statement did.
fn summary(change: &ChangeResult, millis: u128) -> String {
    let mut parts = vec![match change.verb.as_str() {
        verb if change.rows > 0 || matches!(verb, "INSERT" | "DELETE") => format!("{verb} {}", change.rows),
        verb => verb.to_owned(),
    }];
    if let Some(id) = change.snapshot_id {
        parts.push(format!("snapshot {id}"));
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    if change.data_files > 0 {
        let files = change.data_files;
        parts.push(format!("{files} data file{}, {} bytes", plural(files), change.bytes));
    }
    if change.delete_files > 0 {
        let files = change.delete_files;
        parts.push(format!("{files} delete file{}, {} bytes", plural(files), change.delete_bytes));
    }
    if change.removed_files > 0 {
        let files = change.removed_files;
        parts.push(format!("{files} data file{} removed", plural(files)));
    }
    if change.snapshot_id.is_some() && matches!(change.verb.as_str(), "DELETE" | "TRUNCATE TABLE") {
        let files = change.rewritten_files;
        parts.push(format!("{files} data file{} rewritten", plural(files)));
    }
    parts.push(format!("{millis} ms"));
    parts.join(" · ")
}

/// Prints all rows and counts them.
async fn print(client: &mut Client, out: &mut Out, format: Format, mut rows: Rows) -> Result<usize, Failure> {
    let first = rows.next(client).await?;
    let Some(schema) = rows.schema() else {
        return Ok(0);
    };
    let mut printer = Printer::new(out, format, schema)?;
    let mut count = 0;
    let mut next = first;
    while let Some(batch) = next {
        count += batch.num_rows();
        printer.batch(&batch)?;
        next = rows.next(client).await?;
    }
    printer.finish()?;
    Ok(count)
}

/// Reads statements from the person at the terminal until `\q` or the end of input. An error is
/// told and the shell goes on.
async fn shell(mut client: Client, out: &mut Out, format: Format) -> Result<(), Failure> {
    note("\\d lists tables, \\q quits, statements end with `;`");
    let mut pending = String::new();
    loop {
        prompt(if pending.is_empty() { "sandur> " } else { "     -> " })?;
        let mut line = String::new();
        let read = tokio::task::block_in_place(|| io::stdin().read_line(&mut line));
        if read.map_err(|e| Error::invalid("cannot read from the terminal").with_source(e))? == 0 {
            prompt("\n")?;
            return Ok(());
        }
        let mut todo = Vec::new();
        match backslash_command(&line) {
            Some(command) if pending.is_empty() => todo.push(command),
            _ => {
                pending.push_str(&line);
                let (statements, rest) = split(&pending);
                pending = rest;
                todo.extend(statements.into_iter().map(Command::Statement));
            }
        }
        for command in todo {
            if command == Command::Quit {
                return Ok(());
            }
            match run(&mut client, out, format, &command).await {
                Err(Failure::Work(e) | Failure::Usage(e)) => complain(&e.to_string()),
                other => other?,
            }
        }
    }
}

fn prompt(text: &str) -> Result<(), Failure> {
    let mut stderr = io::stderr();
    stderr.write_all(escape_control(text, true).as_bytes())?;
    Ok(stderr.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_statement_needs_no_semicolon() {
        let statement = |sql: &str| Command::Statement(sql.to_owned());
        assert_eq!(commands_of("SELECT 1; SELECT 2"), [statement("SELECT 1"), statement("SELECT 2")]);
        assert_eq!(commands_of(" ; "), []);
    }

    #[test]
    fn backslash_commands_are_known() {
        assert_eq!(commands_of("\\d"), [Command::ListTables]);
        assert_eq!(
            commands_of("\\d iceberg.sample.orders;\n"),
            [Command::Describe("iceberg.sample.orders".into())]
        );
        assert_eq!(backslash_command("\\q\n"), Some(Command::Quit));
        assert_eq!(backslash_command("\\x"), Some(Command::Help));
        assert_eq!(backslash_command("SELECT 1"), None);
    }
}

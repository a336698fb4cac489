//! The one way to stdout, and making text safe for a terminal.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// Standard output, buffered.
#[derive(Debug)]
pub(super) struct Out {
    inner: BufWriter<Stdout>,
    terminal: bool,
}

impl Out {
    pub(super) fn new() -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        Self {
            inner: BufWriter::new(stdout),
            terminal,
        }
    }

    /// True when a person is likely to look at the output.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A line that is safe for a terminal already, at once.
    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.inner, "{line}")?;
        self.inner.flush()
    }

    /// Text of an export format: as it is to a file or pipe, escaped to a terminal.
    pub(super) fn data(&mut self, text: &str) -> io::Result<()> {
        if self.terminal {
            self.inner.write_all(escape_control(text, true).as_bytes())
        } else {
            self.inner.write_all(text.as_bytes())
        }
    }

    /// Bytes that no terminal shall see.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Replaces control characters, and those that reorder text, by `\n`, `\t` or `\u{1b}` forms, so
/// that text from a table cannot steer a terminal. `keep_layout` leaves line breaks and tabs alone.
pub(super) fn escape_control(text: &str, keep_layout: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' if keep_layout => out.push(c),
            '\n' | '\r' | '\t' => out.extend(c.escape_default()),
            c if c.is_control() || reorders(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Line and paragraph separators, directional marks and embeddings.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sequences_become_visible_text() {
        assert_eq!(
            escape_control("a\u{1b}[31mred\u{7}\u{9b}2J", false),
            "a\\u{1b}[31mred\\u{7}\\u{9b}2J"
        );
        assert_eq!(escape_control("a\nb\tc\r", false), "a\\nb\\tc\\r");
        assert_eq!(escape_control("a\nb\tc\r", true), "a\nb\tc\\r");
        assert_eq!(escape_control("x\u{202e}y", true), "x\\u{202e}y");
        assert_eq!(escape_control("Zürich 東京 🙂", false), "Zürich 東京 🙂");
    }
}

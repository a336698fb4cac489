//! Statements of a text: what lies between semicolons, where strings, quoted names and comments
//! hide theirs.

/// Splits `text` into complete statements and the rest behind the last semicolon. Statements are
/// trimmed; those of blanks and comments alone are left out. The rest is as it stands, or empty
/// when it is of blanks and closed comments alone; what is open in it may go on.
pub(super) fn split(text: &str) -> (Vec<String>, String) {
    let mut statements = Vec::new();
    let mut start = 0;
    let mut says_something = false;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let skipped = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else {
            says_something |= !c.is_whitespace() && c != ';';
            match c {
                '\'' | '"' | '`' => quoted(rest, c),
                '$' => dollar_quoted(text, at),
                _ => c.len_utf8(),
            }
        };
        if c == ';' {
            if says_something {
                statements.push(text[start..at].trim().to_owned());
            }
            start = at + 1;
            says_something = false;
        }
        at += skipped;
    }
    let rest = &text[start..];
    // a closed comment at the end is no statement
    let rest = if says_something || open_comment(rest) { rest } else { "" };
    (statements, rest.to_owned())
}

/// Length of a comment that may hold others; to the end when it is open.
fn block_comment(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

fn open_comment(text: &str) -> bool {
    text.rfind("/*").is_some_and(|start| !text[start..].contains("*/"))
}

/// Length of `'it''s'`; a doubled quote ends one part and starts the next, which is the same.
fn quoted(text: &str, quote: char) -> usize {
    text[1..].find(quote).map_or(text.len(), |end| end + 2)
}

/// Length of `$$..$$` or `$tag$..$tag$`; of the dollar alone where it starts no quote.
fn dollar_quoted(text: &str, at: usize) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let rest = &text[at..];
    let Some(end) = rest[1..].find('$') else {
        return 1;
    };
    let tag = &rest[..end + 2];
    let name = &rest[1..end + 1];
    let starts = !text[..at].ends_with(word) && !name.starts_with(|c: char| c.is_numeric()) && name.chars().all(word);
    if !starts {
        return 1;
    }
    match rest[tag.len()..].find(tag) {
        Some(close) => close + 2 * tag.len(),
        None => rest.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, statements: &[&str], rest: &str) {
        let (found, left) = split(text);
        assert_eq!(found, statements, "{text}");
        assert_eq!(left.trim(), rest, "{text}");
    }

    #[test]
    fn semicolons_end_statements() {
        check("SELECT 1; SELECT 2;", &["SELECT 1", "SELECT 2"], "");
        check("SELECT 1;\n SELECT 2 ", &["SELECT 1"], "SELECT 2");
        check(";; ;", &[], "");
        check("", &[], "");
    }

    #[test]
    fn quotes_and_comments_hide_semicolons() {
        check("SELECT 'a;b''c;' ; x", &["SELECT 'a;b''c;'"], "x");
        check("SELECT \"a;b\", `c;d`;", &["SELECT \"a;b\", `c;d`"], "");
        check("SELECT 1 -- one; two\n, 2;", &["SELECT 1 -- one; two\n, 2"], "");
        check("SELECT /* a; /* b; */ c; */ 1;", &["SELECT /* a; /* b; */ c; */ 1"], "");
        check("SELECT $$a;b$$, $x$ ; $$ ; $x$;", &["SELECT $$a;b$$, $x$ ; $$ ; $x$"], "");
        check("SELECT $1; SELECT $2;", &["SELECT $1", "SELECT $2"], "");
        check("SELECT a$b; SELECT c$d;", &["SELECT a$b", "SELECT c$d"], "");
        check("SELECT '日;本' -- 🙂;\n;", &["SELECT '日;本' -- 🙂;"], "");
    }

    #[test]
    fn comments_alone_are_no_statement() {
        check("-- nothing; here\n;", &[], "");
        check("SELECT 1; -- done", &["SELECT 1"], "");
        check("/* a */ SELECT 1", &[], "/* a */ SELECT 1");
        check("/* a */ ", &[], "");
    }

    #[test]
    fn what_is_open_goes_on() {
        check("SELECT 'a;", &[], "SELECT 'a;");
        check("/* a;", &[], "/* a;");
        check("SELECT $$a;", &[], "SELECT $$a;");
        assert_eq!(split("SELECT 'a  \n").1, "SELECT 'a  \n");
    }
}

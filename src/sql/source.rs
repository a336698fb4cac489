//! From text to tokens to a parsed statement, within bounds (SE-31).
//!
//! Invariants: text, tokens and nesting are bounded before anything recursive looks at them;
//! placeholders come out in one form, `$1`.. or `$name`.

use datafusion::sql::sqlparser::ast::{Statement as Ast, TableVersion};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::dialect::SandurDialect;
use super::errors::from_parser;
use super::looking;
use super::versions::{normalise, not_understood};
use crate::error::{Error, ErrorKind, Result};

/// Longest statement in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Most tokens, blanks and comments not counted.
const MAX_TOKENS: usize = 100_000;
/// Deepest nesting that the parser follows.
const MAX_NESTING: usize = 200;
/// Most parameters.
const MAX_PARAMETERS: usize = 10_000;

/// Tokens of one statement.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Names of the placeholders in order of binding: `1`, `2`, ... or names as first written.
    pub(super) parameters: Vec<String>,
}

/// Splits text into tokens.
///
/// Errors: `InvalidInput` for what is no SQL or mixes kinds of placeholders, `ResourceExhausted`
/// beyond the bounds.
pub(super) fn tokenize(sql: &str) -> Result<Source> {
    if sql.len() > MAX_TEXT {
        return Err(Error::resource_exhausted(format!(
            "the statement has {} bytes, the limit is {MAX_TEXT}",
            sql.len()
        )));
    }
    let mut tokens = Tokenizer::new(&SandurDialect, sql)
        .tokenize_with_location()
        .map_err(|e| from_parser(e.into()))?;
    // Blanks and comments would only be walked over again by each parse.
    tokens.retain(|t| !matches!(t.token, Token::Whitespace(_)));
    if tokens.len() > MAX_TOKENS {
        return Err(Error::resource_exhausted(format!(
            "the statement has {} words and symbols, the limit is {MAX_TOKENS}",
            tokens.len()
        )));
    }
    let parameters = number_placeholders(&mut tokens)?;
    expand_table_command(&mut tokens);
    drop_empty_arguments(&mut tokens);
    normalise(&mut tokens);
    looking::expand(&mut tokens);
    Ok(Source { tokens, parameters })
}

/// Parses tokens as exactly one statement; semicolons may follow.
pub(super) fn parse(tokens: &[TokenWithSpan]) -> Result<Ast> {
    match parse_described(tokens)? {
        (statement, None) => Ok(statement),
        (_, Some(_)) => Err(not_understood()),
    }
}

/// As [`parse`], with the version of the table that DESCRIBE may name.
pub(super) fn parse_described(tokens: &[TokenWithSpan]) -> Result<(Ast, Option<TableVersion>)> {
    let first = tokens.iter().find(|t| t.token != Token::SemiColon);
    match first.map(|t| &t.token) {
        None => return Err(Error::invalid("there is no statement")),
        Some(Token::Word(word)) if word.quote_style.is_none() && word.keyword != Keyword::NoKeyword => {
            if !READS.contains(&word.keyword) {
                return Err(refused(&word.value.to_uppercase()));
            }
        }
        Some(_) => {}
    }
    parse_one(tokens).map_err(|e| match unread_version(tokens) {
        Some(travel) if e.kind() == ErrorKind::InvalidInput => travel,
        _ => e,
    })
}

/// Whether the first word is one of these.
pub(super) fn begins_with(tokens: &[TokenWithSpan], words: &[Keyword]) -> bool {
    let first = tokens.iter().find(|t| t.token != Token::SemiColon);
    matches!(first.map(|t| &t.token), Some(Token::Word(word)) if word.quote_style.is_none() && words.contains(&word.keyword))
}

/// First words of statements that only read.
const READS: &[Keyword] = &[
    Keyword::SELECT,
    Keyword::WITH,
    Keyword::VALUES,
    Keyword::TABLE,
    Keyword::EXPLAIN,
    Keyword::DESCRIBE,
    Keyword::DESC,
    Keyword::SHOW,
];

/// A statement that is not run.
pub(super) fn refused(what: &str) -> Error {
    Error::unsupported(format!(
        "{what} is not supported: what runs are SELECT, EXPLAIN, SHOW, DESCRIBE, INSERT, DELETE, TRUNCATE, CREATE and DROP of tables and schemas, and ALTER TABLE .. SET and UNSET TBLPROPERTIES"
    ))
}

fn parse_one(tokens: &[TokenWithSpan]) -> Result<(Ast, Option<TableVersion>)> {
    let mut parser = Parser::new(&SandurDialect)
        .with_recursion_limit(MAX_NESTING)
        .with_tokens_with_locations(tokens.to_vec());
    while parser.consume_token(&Token::SemiColon) {}
    let statement = parser.parse_statement().map_err(from_parser)?;
    let version = match &statement {
        Ast::ExplainTable { .. } => parser.maybe_parse_table_version().map_err(from_parser)?,
        _ => None,
    };
    let ended = parser.consume_token(&Token::SemiColon);
    while parser.consume_token(&Token::SemiColon) {}
    let rest = parser.peek_token_ref();
    match &rest.token {
        Token::EOF => Ok((statement, version)),
        _ if ended => Err(Error::invalid("there is more than one statement: send one at a time")),
        other => Err(Error::invalid(format!(
            "cannot read the statement: it should end before {other} at line {}, column {}",
            rest.span.start.line, rest.span.start.column
        ))),
    }
}

/// Brings `?` to `$1`, `$2`, ... and gives the names in order.
fn number_placeholders(tokens: &mut [TokenWithSpan]) -> Result<Vec<String>> {
    let mut asked = 0_usize;
    let mut highest = 0_usize;
    let mut names: Vec<String> = Vec::new();
    for token in tokens.iter_mut() {
        let Token::Placeholder(text) = &mut token.token else {
            continue;
        };
        if text == "?" {
            asked += 1;
            *text = format!("${asked}");
        } else if let Some(name) = text.strip_prefix('$').filter(|n| !n.is_empty()) {
            if name.bytes().all(|b| b.is_ascii_digit()) {
                let number = name.parse::<usize>().ok().filter(|n| (1..=MAX_PARAMETERS).contains(n));
                let number = number.ok_or_else(|| Error::invalid(format!("parameter ${name} is out of range: the first is $1")))?;
                highest = highest.max(number);
                *text = format!("${number}");
            } else if !names.iter().any(|n| n == name) {
                names.push(name.to_owned());
            }
        } else {
            return Err(Error::invalid(format!("parameter {text} is not understood: write ?, $1 or $name")));
        }
    }
    if [asked > 0, highest > 0, !names.is_empty()].iter().filter(|used| **used).count() > 1 {
        return Err(Error::invalid("the statement mixes kinds of parameters: use ?, or $1, or $name"));
    }
    let count = asked.max(highest);
    if count.max(names.len()) > MAX_PARAMETERS {
        return Err(Error::resource_exhausted(format!(
            "the statement has more than {MAX_PARAMETERS} parameters"
        )));
    }
    if names.is_empty() {
        names = (1..=count).map(|n| n.to_string()).collect();
    }
    Ok(names)
}

/// `TABLE t ...` is `SELECT * FROM t ...`.
fn expand_table_command(tokens: &mut Vec<TokenWithSpan>) {
    let at = tokens.iter().position(|t| t.token != Token::SemiColon);
    if let Some(at) = at
        && let Some(first) = tokens.get(at)
        && matches!(&first.token, Token::Word(w) if w.keyword == Keyword::TABLE)
    {
        let span = first.span;
        let select = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
        tokens.splice(at..=at, select.map(|token| TokenWithSpan::new(token, span)));
    }
}

/// `current_catalog()` is `CURRENT_CATALOG`, which the parser takes without parentheses only.
fn drop_empty_arguments(tokens: &mut Vec<TokenWithSpan>) {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in std::mem::take(tokens) {
        let is_call = match (kept.as_slice(), &token.token) {
            ([.., name, open], Token::RParen) if open.token == Token::LParen => {
                matches!(&name.token, Token::Word(w) if w.keyword == Keyword::CURRENT_CATALOG)
            }
            _ => false,
        };
        if is_call {
            kept.pop();
        } else {
            kept.push(token);
        }
    }
    *tokens = kept;
}

/// The error for a statement that does not parse because it names a version in a form that is not read.
fn unread_version(tokens: &[TokenWithSpan]) -> Option<Error> {
    // `t @v1`, not `SELECT @v1`
    let behind_a_name = |i: usize| match i.checked_sub(1).and_then(|before| tokens.get(before)).map(|t| &t.token) {
        Some(Token::Word(word)) => word.quote_style.is_some() || !READS.contains(&word.keyword),
        _ => false,
    };
    let word = |i: usize| match tokens.get(i).map(|t| &t.token) {
        Some(Token::Word(Word {
            value, quote_style: None, ..
        })) => value.to_ascii_uppercase(),
        Some(Token::LParen) => "(".to_owned(),
        Some(Token::AtSign | Token::AtAt) => "@".to_owned(),
        Some(Token::CustomBinaryOperator(op)) if op.starts_with('@') => "@".to_owned(),
        _ => String::new(),
    };
    let found = (0..tokens.len()).any(|i| {
        let (a, b) = (word(i), word(i + 1));
        match a.as_str() {
            "@" => behind_a_name(i),
            "BEFORE" => b == "(",
            "AS" => b == "OF" && matches!(word(i + 2).as_str(), "VERSION" | "TIMESTAMP"),
            _ => false,
        }
    });
    found.then(not_understood)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(sql: &str) -> Result<Vec<String>> {
        Ok(tokenize(sql)?.parameters)
    }

    #[test]
    fn placeholders_of_one_kind_are_numbered_or_named() {
        assert_eq!(parameters("SELECT ?, '?' FROM t WHERE a = ? -- ?").unwrap(), ["1", "2"]);
        assert_eq!(parameters("SELECT $2, $1, $02").unwrap(), ["1", "2"]);
        assert_eq!(parameters("SELECT $b, $a, $b, $$ $c $$").unwrap(), ["b", "a"]);
        assert_eq!(parameters("SELECT 1").unwrap(), Vec::<String>::new());
        for bad in [
            "SELECT ?, $1",
            "SELECT $1, $a",
            "SELECT $0",
            "SELECT $99999999999999999999",
            "SELECT ?1",
        ] {
            assert_eq!(parameters(bad).unwrap_err().kind(), ErrorKind::InvalidInput, "{bad}");
        }
    }

    #[test]
    fn one_statement_with_comments_and_semicolons() {
        for good in [
            "/* a */ -- b\n SELECT 1;",
            ";;SELECT 1;;",
            "table t order by 1",
            "(SELECT 1)",
            "VALUES (1)",
        ] {
            parse(&tokenize(good).unwrap().tokens).unwrap();
        }
        for bad in [
            "",
            " ; ",
            "-- x",
            "SELECT 1; SELECT 2",
            "SELECT 1 SELECT",
            "SELEC 1",
            "SELECT 'x",
            "SELECT \"x",
        ] {
            let got = tokenize(bad).and_then(|s| parse(&s.tokens));
            assert_eq!(got.unwrap_err().kind(), ErrorKind::InvalidInput, "{bad}");
        }
    }

    #[test]
    fn size_is_bounded() {
        let long = format!("SELECT '{}'", "x".repeat(MAX_TEXT));
        assert_eq!(tokenize(&long).unwrap_err().kind(), ErrorKind::ResourceExhausted);
        let many = format!("SELECT 1{}", "+1".repeat(60_000));
        assert_eq!(tokenize(&many).unwrap_err().kind(), ErrorKind::ResourceExhausted);
        let nested = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
        let e = parse(&tokenize(&nested).unwrap().tokens).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    }
}

//! Reading `DELETE FROM t [AS a] [USING ..] [WHERE ..] [ORDER BY .. LIMIT n]` and `TRUNCATE TABLE t`.
//!
//! What stands behind the table is left where it is in the tokens: the query that finds the rows takes it from
//! there ([`RowsOf`]).

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::super::start::RowsOf;
use super::parse::{Reader, read, unsupported};
use crate::error::{Error, Result};

/// `DELETE FROM` and `TRUNCATE TABLE`.
#[derive(Debug, Clone)]
pub(in super::super) struct Delete {
    /// What it is called, in capitals.
    pub(super) verb: &'static str,
    pub(super) rows: RowsOf,
}

impl Reader<'_> {
    pub(super) fn delete(&mut self, tokens: &[TokenWithSpan]) -> Result<Delete> {
        self.expect(Keyword::FROM)?;
        let start = self.position();
        let table = self.name()?;
        let name = start..self.position();
        let alias = read(self.parser.maybe_parse_table_alias())?;
        if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
            return unsupported("DELETE with names for columns");
        }
        let clauses = [Keyword::WHERE, Keyword::ORDER, Keyword::LIMIT, Keyword::RETURNING];
        let mut rest = self.position();
        let mut using = None;
        if self.word(Keyword::USING) {
            let first = self.position();
            rest = next_of(tokens, first, &clauses);
            using = Some(first..rest);
        }
        let tail = tokens.get(rest).map(|token| &token.token);
        let is_clause = matches!(tail, None | Some(Token::EOF | Token::SemiColon))
            || matches!(tail, Some(Token::Word(word)) if word.quote_style.is_none() && clauses.contains(&word.keyword));
        if !is_clause {
            return Err(Error::invalid(format!(
                "cannot read the statement: behind the table of DELETE come USING and WHERE, not {}",
                tail.map(ToString::to_string).unwrap_or_default()
            )));
        }
        let returning = next_of(tokens, rest, &[Keyword::RETURNING]);
        if tokens.get(returning).is_some_and(|token| matches!(token.token, Token::Word(_))) {
            return unsupported("DELETE .. RETURNING");
        }
        Ok(Delete {
            verb: "DELETE",
            rows: RowsOf {
                table,
                name,
                alias: alias.map(|alias| alias.name),
                using,
                rest,
            },
        })
    }

    pub(super) fn truncate(&mut self, tokens: &[TokenWithSpan]) -> Result<Delete> {
        let _ = self.word(Keyword::TABLE);
        let start = self.position();
        let table = self.name()?;
        let name = start..self.position();
        Ok(Delete {
            verb: "TRUNCATE TABLE",
            rows: RowsOf {
                table,
                name,
                alias: None,
                using: None,
                rest: tokens.len(),
            },
        })
    }
}

/// Index of the first of these words from `from` on that is in no parentheses, or of the end of the statement.
fn next_of(tokens: &[TokenWithSpan], from: usize, words: &[Keyword]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::SemiColon | Token::EOF if depth == 0 => return at,
            Token::Word(word) if depth == 0 && word.quote_style.is_none() && words.contains(&word.keyword) => return at,
            _ => {}
        }
    }
    tokens.len()
}

//! Statements that look at a table and are queries of its metadata tables: `DESCRIBE DETAIL t`, `DESCRIBE HISTORY t`,
//! `SHOW CREATE TABLE t` (interface.md 4).
//!
//! The parser does not know them, so their words are replaced before it sees them.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The first words of a form, and the metadata table that it reads.
const FORMS: &[(&[&str], &str)] = &[
    (&["DESCRIBE", "DETAIL"], "detail"),
    (&["DESC", "DETAIL"], "detail"),
    (&["DESCRIBE", "HISTORY"], "history"),
    (&["DESC", "HISTORY"], "history"),
    (&["SHOW", "CREATE", "TABLE"], "create_statement"),
];

/// Replaces a form by the query that it means. Where something else than a name follows, nothing is done: then the words
/// are those of another statement, or of none.
pub(super) fn expand(tokens: &mut Vec<TokenWithSpan>) {
    let start = tokens.iter().take_while(|t| t.token == Token::SemiColon).count();
    let is_word = |token: Option<&TokenWithSpan>, wanted: &str| matches!(token.map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(wanted));
    let found = FORMS
        .iter()
        .find(|(words, _)| words.iter().enumerate().all(|(at, word)| is_word(tokens.get(start + at), word)));
    let Some((words, table)) = found else { return };
    let name = start + words.len();
    let end = tokens.len()
        - tokens
            .iter()
            .rev()
            .take_while(|t| matches!(t.token, Token::SemiColon | Token::EOF))
            .count();
    let parts = tokens.get(name..end).unwrap_or_default();
    let is_name = parts.len() % 2 == 1
        && parts.iter().enumerate().all(|(at, part)| match part.token {
            Token::Word(_) => at % 2 == 0,
            Token::Period => at % 2 == 1,
            _ => false,
        });
    let Some(last) = parts.last().filter(|_| is_name) else { return };
    let span = last.span;
    let word = |value: &str| {
        Token::Word(Word {
            value: value.to_owned(),
            quote_style: Some('"'),
            keyword: datafusion::sql::sqlparser::keywords::Keyword::NoKeyword,
        })
    };
    let behind = [Token::Period, word(table)].map(|token| TokenWithSpan::new(token, span));
    let before = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")].map(|token| TokenWithSpan::new(token, span));
    tokens.splice(end..end, behind);
    tokens.splice(start..name, before);
}

#[cfg(test)]
mod tests {
    use super::super::source::tokenize;

    fn shown(sql: &str) -> String {
        let tokens = tokenize(sql).unwrap().tokens;
        tokens.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn forms_become_queries() {
        assert_eq!(shown("describe detail a.\"B c\";"), "SELECT * FROM a . \"B c\" . \"detail\" ;");
        assert_eq!(shown("DESC HISTORY t"), "SELECT * FROM t . \"history\"");
        assert_eq!(shown("SHOW CREATE TABLE c.s.t"), "SELECT * FROM c . s . t . \"create_statement\"");
        for other in [
            "DESCRIBE detail",
            "DESCRIBE history . t",
            "DESCRIBE DETAIL t AS x",
            "SHOW CREATE TABLE t, u",
            "DESCRIBE \"DETAIL\" t",
        ] {
            assert!(!shown(other).starts_with("SELECT"), "{other}");
        }
    }
}

//! Reading statements that change something: CREATE, DROP, ALTER, INSERT, DELETE and TRUNCATE (interface.md 4).
//!
//! Invariants: every clause that is read is carried out or refused by name, none is skipped; clauses of
//! CREATE TABLE come in any order, each once; a query inside is left where it is in the tokens, so that it
//! is planned as any other query.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::ast::{ColumnDef, Expr, Ident, TableConstraint};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{IsOptional, Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::super::dialect::SandurDialect;
use super::super::errors::from_parser;
use super::super::gate::name_parts;
use super::parse_delete::Delete;
use crate::error::{Error, Result};

/// Deepest nesting of types and expressions in a head.
const MAX_NESTING: usize = 64;

/// A statement that changes something.
#[derive(Debug, Clone)]
pub(in super::super) enum Change {
    CreateTable(Box<CreateTable>),
    DropTable {
        name: Vec<String>,
        if_exists: bool,
        purge: bool,
    },
    CreateSchema {
        name: Vec<String>,
        if_not_exists: bool,
        properties: BTreeMap<String, String>,
    },
    DropSchema {
        name: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    AlterProperties {
        name: Vec<String>,
        set: BTreeMap<String, String>,
        unset: Vec<String>,
        /// Of the properties that are unset.
        if_exists: bool,
    },
    Insert(Insert),
    Delete(Delete),
}

/// `CREATE TABLE`.
#[derive(Debug, Clone)]
pub(in super::super) struct CreateTable {
    pub(super) name: Vec<String>,
    pub(super) if_not_exists: bool,
    pub(super) columns: Vec<ColumnDef>,
    pub(super) primary_key: Vec<String>,
    /// Of USING.
    pub(super) format: Option<String>,
    pub(super) partitions: Vec<Term>,
    pub(super) order: Vec<Order>,
    pub(super) location: Option<String>,
    pub(super) comment: Option<String>,
    pub(super) properties: BTreeMap<String, String>,
    /// Index of the first token of the query behind AS.
    pub(super) query: Option<usize>,
}

/// A column, or a transform of one: `bucket(16, c)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// In lower case; `identity` for a column alone.
    pub(super) transform: String,
    pub(super) argument: Option<u32>,
    /// The column's path.
    pub(super) column: Vec<String>,
}

/// A term of WRITE ORDERED BY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) term: Term,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// `INSERT INTO`.
#[derive(Debug, Clone)]
pub(in super::super) struct Insert {
    pub(super) table: Vec<String>,
    /// Empty: all columns in order.
    pub(super) columns: Vec<String>,
    pub(super) by_name: bool,
    /// Index of the first token of the query.
    pub(super) query: usize,
}

impl Change {
    /// Index of the first token of the query inside, if there is one.
    pub(in super::super) fn query(&self) -> Option<usize> {
        match self {
            Self::CreateTable(create) => create.query,
            Self::Insert(insert) => Some(insert.query),
            _ => None,
        }
    }
}

/// First words of statements that are read here.
pub(in super::super) const CHANGES: &[Keyword] = &[
    Keyword::CREATE,
    Keyword::DROP,
    Keyword::ALTER,
    Keyword::INSERT,
    Keyword::DELETE,
    Keyword::TRUNCATE,
];

/// Reads a statement whose first word is one of [`CHANGES`].
///
/// Errors: `InvalidInput` for what is no such statement, `Unsupported` for forms that are not built.
pub(in super::super) fn parse(tokens: &[TokenWithSpan]) -> Result<Change> {
    let mut parser = Parser::new(&SandurDialect)
        .with_recursion_limit(MAX_NESTING)
        .with_tokens_with_locations(tokens.to_vec());
    while parser.consume_token(&Token::SemiColon) {}
    let mut reader = Reader { parser };
    let change = if reader.word(Keyword::INSERT) {
        Change::Insert(reader.insert()?)
    } else if reader.word(Keyword::DROP) {
        reader.drop()?
    } else if reader.word(Keyword::DELETE) {
        return Ok(Change::Delete(reader.delete(tokens)?));
    } else if reader.word(Keyword::TRUNCATE) {
        Change::Delete(reader.truncate(tokens)?)
    } else if reader.word(Keyword::ALTER) {
        reader.alter()?
    } else {
        reader.expect(Keyword::CREATE)?;
        reader.create()?
    };
    if change.query().is_none() {
        reader.end()?;
    }
    Ok(change)
}

pub(super) struct Reader<'a> {
    pub(super) parser: Parser<'a>,
}

/// As the parser has it, where it is the text that is wrong.
pub(super) fn read<T>(result: std::result::Result<T, ParserError>) -> Result<T> {
    result.map_err(from_parser)
}

pub(super) fn unsupported<T>(what: &str) -> Result<T> {
    Err(Error::unsupported(format!("{what} is not supported")))
}

impl Reader<'_> {
    pub(super) fn word(&mut self, keyword: Keyword) -> bool {
        self.parser.parse_keyword(keyword)
    }

    fn words(&mut self, keywords: &[Keyword]) -> bool {
        self.parser.parse_keywords(keywords)
    }

    pub(super) fn expect(&mut self, keyword: Keyword) -> Result<()> {
        read(self.parser.expect_keyword_is(keyword))
    }

    /// A word that the parser has no keyword for.
    fn plain(&mut self, text: &str) -> bool {
        let is =
            matches!(&self.parser.peek_token_ref().token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text));
        if is {
            self.parser.advance_token();
        }
        is
    }

    pub(super) fn name(&mut self) -> Result<Vec<String>> {
        name_parts(&read(self.parser.parse_object_name(false))?)
    }

    fn if_not_exists(&mut self) -> bool {
        self.words(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS])
    }

    fn if_exists(&mut self) -> bool {
        self.words(&[Keyword::IF, Keyword::EXISTS])
    }

    fn end(&mut self) -> Result<()> {
        let ended = self.parser.consume_token(&Token::SemiColon);
        while self.parser.consume_token(&Token::SemiColon) {}
        let rest = self.parser.peek_token_ref();
        match &rest.token {
            Token::EOF => Ok(()),
            _ if ended => Err(Error::invalid("there is more than one statement: send one at a time")),
            other => Err(Error::invalid(format!(
                "cannot read the statement: {other} is not understood at line {}, column {}",
                rest.span.start.line, rest.span.start.column
            ))),
        }
    }

    /// Index of the token that comes next.
    pub(super) fn position(&self) -> usize {
        self.parser.index()
    }

    fn insert(&mut self) -> Result<Insert> {
        if self.word(Keyword::OVERWRITE) {
            return unsupported("INSERT OVERWRITE (not built yet)");
        }
        self.expect(Keyword::INTO)?;
        let _ = self.word(Keyword::TABLE);
        let table = self.name()?;
        let by_name = self.words(&[Keyword::BY, Keyword::NAME]);
        let mut columns = Vec::new();
        if self.parser.peek_token_ref().token == Token::LParen && !self.is_query_in_parentheses() {
            let list = read(self.parser.parse_parenthesized_column_list(IsOptional::Mandatory, false))?;
            columns = list.into_iter().map(|ident: Ident| ident.value).collect();
        }
        if by_name && !columns.is_empty() {
            return Err(Error::invalid("INSERT takes BY NAME or a list of columns, not both"));
        }
        if self.words(&[Keyword::DEFAULT, Keyword::VALUES]) {
            return unsupported("INSERT .. DEFAULT VALUES (list the columns that get a value)");
        }
        if self.word(Keyword::PARTITION) {
            return unsupported("INSERT .. PARTITION (name partition columns like the others)");
        }
        if self.word(Keyword::REPLACE) {
            return unsupported("INSERT .. REPLACE WHERE (not built yet)");
        }
        Ok(Insert {
            table,
            columns,
            by_name,
            query: self.position(),
        })
    }

    /// Whether the parenthesis ahead opens a query and no list of columns.
    fn is_query_in_parentheses(&self) -> bool {
        let mut at = 0;
        while self.parser.peek_nth_token_ref(at).token == Token::LParen {
            at += 1;
        }
        matches!(
            &self.parser.peek_nth_token_ref(at).token,
            Token::Word(word) if word.quote_style.is_none()
                && matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE)
        )
    }

    fn drop(&mut self) -> Result<Change> {
        if self.word(Keyword::TABLE) {
            let if_exists = self.if_exists();
            let name = self.name()?;
            let purge = self.word(Keyword::PURGE);
            if self.word(Keyword::CASCADE) {
                return unsupported("DROP TABLE .. CASCADE: nothing depends on a table here");
            }
            let _ = self.word(Keyword::RESTRICT);
            return Ok(Change::DropTable { name, if_exists, purge });
        }
        if self.word(Keyword::SCHEMA) || self.word(Keyword::DATABASE) || self.plain("namespace") {
            let if_exists = self.if_exists();
            let name = self.name()?;
            let cascade = self.word(Keyword::CASCADE);
            let _ = self.word(Keyword::RESTRICT);
            return Ok(Change::DropSchema { name, if_exists, cascade });
        }
        Err(Error::unsupported(format!(
            "DROP {} is not supported: DROP takes TABLE or SCHEMA",
            self.parser.peek_token_ref().token
        )))
    }

    fn alter(&mut self) -> Result<Change> {
        if !self.word(Keyword::TABLE) {
            return Err(Error::unsupported(format!(
                "ALTER {} is not supported: ALTER takes TABLE",
                self.parser.peek_token_ref().token
            )));
        }
        if self.if_exists() {
            return unsupported("ALTER TABLE IF EXISTS");
        }
        let name = self.name()?;
        let (mut set, mut unset, mut if_exists) = (BTreeMap::new(), Vec::new(), false);
        if self.words(&[Keyword::SET, Keyword::TBLPROPERTIES]) {
            self.properties(&mut set)?;
        } else if self.words(&[Keyword::UNSET, Keyword::TBLPROPERTIES]) {
            if_exists = self.if_exists();
            unset = self.in_parentheses(Self::property_name)?;
        } else {
            let words = (0..2).map_while(|at| match &self.parser.peek_nth_token_ref(at).token {
                Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
                _ => None,
            });
            let what = words.collect::<Vec<_>>().join(" ");
            return Err(Error::unsupported(format!(
                "ALTER TABLE .. {what} is not built yet: ALTER TABLE takes SET TBLPROPERTIES and UNSET TBLPROPERTIES"
            )));
        }
        Ok(Change::AlterProperties {
            name,
            set,
            unset,
            if_exists,
        })
    }

    fn create(&mut self) -> Result<Change> {
        if self.words(&[Keyword::OR, Keyword::REPLACE]) {
            return unsupported("CREATE OR REPLACE (not built yet)");
        }
        if self.word(Keyword::SCHEMA) || self.word(Keyword::DATABASE) || self.plain("namespace") {
            return self.create_schema();
        }
        if !self.word(Keyword::TABLE) {
            return Err(Error::unsupported(format!(
                "CREATE {} is not supported: CREATE takes TABLE or SCHEMA",
                self.parser.peek_token_ref().token
            )));
        }
        Ok(Change::CreateTable(Box::new(self.create_table()?)))
    }

    fn create_schema(&mut self) -> Result<Change> {
        let if_not_exists = self.if_not_exists();
        let name = self.name()?;
        let mut properties = BTreeMap::new();
        loop {
            if self.word(Keyword::COMMENT) {
                put("comment", read(self.parser.parse_literal_string())?, &mut properties)?;
            } else if self.word(Keyword::LOCATION) {
                put("location", read(self.parser.parse_literal_string())?, &mut properties)?;
            } else if self.word(Keyword::WITH) || self.plain("dbproperties") || self.plain("properties") {
                let _ = self.plain("dbproperties") || self.plain("properties");
                self.properties(&mut properties)?;
            } else {
                break;
            }
        }
        Ok(Change::CreateSchema {
            name,
            if_not_exists,
            properties,
        })
    }

    fn create_table(&mut self) -> Result<CreateTable> {
        let if_not_exists = self.if_not_exists();
        let mut table = CreateTable {
            name: self.name()?,
            if_not_exists,
            columns: Vec::new(),
            primary_key: Vec::new(),
            format: None,
            partitions: Vec::new(),
            order: Vec::new(),
            location: None,
            comment: None,
            properties: BTreeMap::new(),
            query: None,
        };
        if self.parser.consume_token(&Token::LParen) {
            self.columns(&mut table)?;
        }
        let mut seen = Vec::new();
        loop {
            let clause = self.clause(&mut table)?;
            match clause {
                None => return Ok(table),
                Some("AS") => {
                    table.query = Some(self.position());
                    return Ok(table);
                }
                Some(clause) if seen.contains(&clause) => return Err(Error::invalid(format!("CREATE TABLE has {clause} twice"))),
                Some(clause) => seen.push(clause),
            }
        }
    }

    /// The columns and constraints in parentheses.
    fn columns(&mut self, table: &mut CreateTable) -> Result<()> {
        loop {
            if let Some(constraint) = read(self.parser.parse_optional_table_constraint())? {
                match constraint {
                    TableConstraint::PrimaryKey(key) => {
                        if !table.primary_key.is_empty() {
                            return Err(Error::invalid("the table has two primary keys"));
                        }
                        if key.characteristics.as_ref().and_then(|c| c.enforced) != Some(false) {
                            return unsupported("a primary key that is enforced: write PRIMARY KEY (..) NOT ENFORCED");
                        }
                        let columns = key.columns.iter().map(|c| column_path(&c.column.expr));
                        for path in columns {
                            table.primary_key.push(path?.join("."));
                        }
                    }
                    other => return Err(Error::unsupported(format!("the constraint {other} is not supported"))),
                }
            } else {
                table.columns.push(read(self.parser.parse_column_def())?);
            }
            if self.parser.consume_token(&Token::RParen) {
                return Ok(());
            }
            read(self.parser.expect_token(&Token::Comma))?;
        }
    }

    /// One clause behind the columns: its name, or `None` at the end.
    fn clause(&mut self, table: &mut CreateTable) -> Result<Option<&'static str>> {
        if self.word(Keyword::USING) {
            table.format = Some(read(self.parser.parse_identifier())?.value.to_lowercase());
            return Ok(Some("USING"));
        }
        if self.words(&[Keyword::PARTITIONED, Keyword::BY]) || self.words(&[Keyword::PARTITION, Keyword::BY]) {
            table.partitions = self.in_parentheses(Self::term)?;
            return Ok(Some("PARTITIONED BY"));
        }
        if self.plain("write") {
            if !self.plain("ordered") {
                return Err(Error::invalid("WRITE is followed by ORDERED BY"));
            }
            self.expect(Keyword::BY)?;
            table.order = if self.parser.peek_token_ref().token == Token::LParen {
                self.in_parentheses(Self::order)?
            } else {
                self.comma_separated(Self::order)?
            };
            return Ok(Some("WRITE ORDERED BY"));
        }
        if self.words(&[Keyword::CLUSTER, Keyword::BY]) {
            return unsupported("CLUSTER BY on an Iceberg table (write WRITE ORDERED BY)");
        }
        if self.word(Keyword::LOCATION) {
            table.location = Some(read(self.parser.parse_literal_string())?);
            return Ok(Some("LOCATION"));
        }
        if self.word(Keyword::COMMENT) {
            let _ = self.parser.consume_token(&Token::Eq);
            table.comment = Some(read(self.parser.parse_literal_string())?);
            return Ok(Some("COMMENT"));
        }
        if self.word(Keyword::TBLPROPERTIES) || self.word(Keyword::WITH) {
            self.properties(&mut table.properties)?;
            return Ok(Some("TBLPROPERTIES"));
        }
        Ok(self.word(Keyword::AS).then_some("AS"))
    }

    fn in_parentheses<T>(&mut self, each: fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        read(self.parser.expect_token(&Token::LParen))?;
        let list = self.comma_separated(each)?;
        read(self.parser.expect_token(&Token::RParen))?;
        Ok(list)
    }

    fn comma_separated<T>(&mut self, each: fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = vec![each(self)?];
        while self.parser.consume_token(&Token::Comma) {
            list.push(each(self)?);
        }
        Ok(list)
    }

    fn term(&mut self) -> Result<Term> {
        let name = self.name()?;
        if !self.parser.consume_token(&Token::LParen) {
            return Ok(Term {
                transform: "identity".to_owned(),
                argument: None,
                column: name,
            });
        }
        let [transform] = name.as_slice() else {
            return Err(Error::invalid(format!("{} is no partition transform", name.join("."))));
        };
        let number = |token: &Token| match token {
            Token::Number(text, _) => text.parse::<u32>().ok(),
            _ => None,
        };
        let mut argument = None;
        let mut column = None;
        loop {
            if let Token::Number(text, _) = &self.parser.peek_token_ref().token {
                let text = text.clone();
                let value = number(&self.parser.next_token().token);
                let value = value.ok_or_else(|| Error::invalid(format!("{text} is no argument of a partition transform")))?;
                if argument.replace(value).is_some() {
                    return Err(Error::invalid(format!("{transform} takes one number")));
                }
            } else if column.is_none() {
                column = Some(self.name()?);
            } else {
                return unsupported("a partition transform of several columns");
            }
            if self.parser.consume_token(&Token::RParen) {
                break;
            }
            read(self.parser.expect_token(&Token::Comma))?;
        }
        let column = column.ok_or_else(|| Error::invalid(format!("{transform} needs a column")))?;
        Ok(Term {
            transform: transform.to_lowercase(),
            argument,
            column,
        })
    }

    fn order(&mut self) -> Result<Order> {
        let term = self.term()?;
        let descending = self.word(Keyword::DESC);
        if !descending {
            let _ = self.word(Keyword::ASC);
        }
        // Spark's default: nulls first when ascending, last when descending.
        let nulls_first = if self.words(&[Keyword::NULLS, Keyword::FIRST]) {
            true
        } else if self.words(&[Keyword::NULLS, Keyword::LAST]) {
            false
        } else {
            !descending
        };
        Ok(Order {
            term,
            descending,
            nulls_first,
        })
    }

    /// `('k' = 'v', ..)`; keys and values also without quotes where they are plain.
    fn properties(&mut self, properties: &mut BTreeMap<String, String>) -> Result<()> {
        let pairs = self.in_parentheses(Self::property)?;
        for (key, value) in pairs {
            put(&key, value, properties)?;
        }
        Ok(())
    }

    fn property_name(&mut self) -> Result<String> {
        match &self.parser.peek_token_ref().token {
            Token::SingleQuotedString(_) => read(self.parser.parse_literal_string()),
            _ => Ok(self.name()?.join(".")),
        }
    }

    fn property(&mut self) -> Result<(String, String)> {
        let key = self.property_name()?;
        let _ = self.parser.consume_token(&Token::Eq);
        let token = self.parser.next_token();
        let value = match token.token {
            Token::SingleQuotedString(text) | Token::Number(text, _) => text,
            Token::Word(word) if matches!(word.keyword, Keyword::TRUE | Keyword::FALSE) => word.value.to_lowercase(),
            other => return Err(Error::invalid(format!("property {key} needs a value in quotes, not {other}"))),
        };
        Ok((key, value))
    }
}

fn put(key: &str, value: String, properties: &mut BTreeMap<String, String>) -> Result<()> {
    match properties.insert(key.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("property {key} is given twice"))),
    }
}

/// The path of a column that an expression is.
fn column_path(expr: &Expr) -> Result<Vec<String>> {
    match expr {
        Expr::Identifier(ident) => Ok(vec![ident.value.clone()]),
        Expr::CompoundIdentifier(parts) => Ok(parts.iter().map(|ident| ident.value.clone()).collect()),
        other => Err(Error::invalid(format!("{other} is no column"))),
    }
}

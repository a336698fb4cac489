//! Filters of the metadata commands: exact names, LIKE patterns, table types.
//!
//! Invariants: an absent filter matches all; `%` is any run of characters, `_` one character, and
//! [`ESCAPE`] takes the meaning from the character behind it. Case counts, except in table types.
//! flight-sql.md 1.2 and T20.

/// What SqlInfo 513 announces.
pub(super) const ESCAPE: char = '\\';

/// The one type of table there is.
pub(super) const TABLE_TYPE: &str = "TABLE";

/// A LIKE pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Option<Vec<Token>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Run,
    One,
    Literal(char),
}

impl Pattern {
    /// From a command's optional pattern.
    pub(super) fn new(pattern: Option<&str>) -> Self {
        Self(pattern.map(|pattern| {
            let mut tokens = Vec::new();
            let mut chars = pattern.chars();
            while let Some(c) = chars.next() {
                tokens.push(match c {
                    '%' => Token::Run,
                    '_' => Token::One,
                    // An escape at the end stands for itself.
                    ESCAPE => Token::Literal(chars.next().unwrap_or(ESCAPE)),
                    other => Token::Literal(other),
                });
            }
            tokens
        }))
    }

    /// Whether a name matches. Takes at most pattern times name steps.
    pub(super) fn matches(&self, name: &str) -> bool {
        let Some(tokens) = &self.0 else { return true };
        let name: Vec<char> = name.chars().collect();
        let (mut token, mut at) = (0, 0);
        // Where to go on when the last run has to take one character more.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match (tokens.get(token), name.get(at)) {
                (Some(Token::Run), _) => {
                    retry = Some((token, at));
                    token += 1;
                }
                (None, None) => return true,
                (Some(Token::One), Some(_)) => {
                    token += 1;
                    at += 1;
                }
                (Some(Token::Literal(expected)), Some(c)) if expected == c => {
                    token += 1;
                    at += 1;
                }
                _ => match retry {
                    Some((run, from)) if from < name.len() => {
                        retry = Some((run, from + 1));
                        token = run + 1;
                        at = from + 1;
                    }
                    _ => return false,
                },
            }
        }
    }
}

/// Whether a catalog's name passes the filter. An empty filter asks for objects without a
/// catalog, which there are none of; some clients send `%` for any.
pub(super) fn catalog_matches(filter: Option<&str>, name: &str) -> bool {
    match filter {
        None | Some("%") => true,
        Some(filter) => filter == name,
    }
}

/// Whether tables pass a filter on types; no types means all.
pub(super) fn tables_wanted(types: &[String]) -> bool {
    types.is_empty()
        || types
            .iter()
            .any(|t| t.eq_ignore_ascii_case(TABLE_TYPE) || t.eq_ignore_ascii_case("BASE TABLE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_like_does() {
        let cases = [
            ("orders", "orders", true),
            ("orders", "Orders", false),
            ("orders", "orders2", false),
            ("%", "", true),
            ("%", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("ord%", "orders", true),
            ("%ers", "orders", true),
            ("%rde%", "orders", true),
            ("%a%b%c", "xaybzbc", true),
            ("%a%b%c", "xaybzb", false),
            ("order_", "orders", true),
            ("order_", "order", false),
            ("a_b", "axb", true),
            ("a\\_b", "axb", false),
            ("a\\_b", "a_b", true),
            ("50\\%", "50%", true),
            ("50\\%", "500", false),
            ("a\\\\b", "a\\b", true),
            ("a\\", "a\\", true),
            ("_", "ü", true),
            ("[ab]", "a", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Pattern::new(Some(pattern)).matches(name), expected, "{pattern} on {name}");
        }
        assert!(Pattern::new(None).matches("x"));
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        let pattern = "%a".repeat(200) + "b";
        assert!(!Pattern::new(Some(&pattern)).matches(&"a".repeat(5000)));
    }

    #[test]
    fn catalogs_are_exact_but_for_the_percent_sign() {
        assert!(catalog_matches(None, "c"));
        assert!(catalog_matches(Some("%"), "c"));
        assert!(catalog_matches(Some("c"), "c"));
        assert!(!catalog_matches(Some("c%"), "c"));
        assert!(!catalog_matches(Some(""), "c"));
    }

    #[test]
    fn table_types_ignore_case_and_know_the_alias() {
        let wanted = |types: &[&str]| tables_wanted(&types.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        assert!(wanted(&[]));
        assert!(wanted(&["table"]));
        assert!(wanted(&["VIEW", "base table"]));
        assert!(!wanted(&["VIEW"]));
    }
}

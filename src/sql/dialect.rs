//! The SQL dialect: DataFusion's generic one, as far as what it accepts is also carried out.
//!
//! Invariants: `"` and `` ` `` both quote identifiers; `@` is no part of a name, so that
//! `t @v1` is not read as an alias; table versions are parsed, so that they can be refused
//! rather than dropped (architecture.md 2.4); `IS DISTINCT FROM` ends where a comparison does and is not chained.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SandurDialect;

macro_rules! as_generic {
    ($($feature:ident),* $(,)?) => {
        $(fn $feature(&self) -> bool { GenericDialect.$feature() })*
    };
}

impl Dialect for SandurDialect {
    // The parser asks for the generic dialect by type in places.
    fn dialect(&self) -> std::any::TypeId {
        GenericDialect.dialect()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '$'
    }

    // The parser takes all that follows for the right side, as if AND and OR bound closer than IS.
    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        use Keyword::{DISTINCT, FROM, IS, NOT};
        let negated = parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]);
        if !negated && !parser.parse_keywords(&[IS, DISTINCT, FROM]) {
            return None;
        }
        // As in Postgres; the left side is copied, too, which a long chain would do over and over.
        if is_chained(expr) {
            let message = "IS DISTINCT FROM after another one needs parentheses around the first";
            return Some(Err(ParserError::ParserError(message.to_owned())));
        }
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        let of = if negated { Expr::IsNotDistinctFrom } else { Expr::IsDistinctFrom };
        Some(right.map(|right| of(Box::new(expr.clone()), Box::new(right))))
    }

    // In types only: MAP<STRING, INT>.
    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        true
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    as_generic![
        allow_extract_custom,
        allow_extract_single_quotes,
        support_map_literal_syntax,
        supports_array_join_syntax,
        supports_array_typedef_with_brackets,
        supports_bitwise_shift_operators,
        supports_comma_separated_trim,
        supports_cte_without_as,
        supports_data_type_signed_suffix,
        supports_dictionary_syntax,
        supports_explain_with_utility_options,
        supports_extract_comma_syntax,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_interval_options,
        supports_left_associative_joins_without_parens,
        supports_limit_comma,
        supports_named_fn_args_with_assignment_operator,
        supports_nested_comments,
        supports_parens_around_table_factor,
        supports_partition_by_after_order_by,
        supports_pipe_operator,
        supports_projection_trailing_commas,
        supports_quote_delimited_string,
        supports_select_wildcard_except,
        supports_select_wildcard_exclude,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_select_wildcard_replace,
        supports_string_escape_constant,
        supports_struct_literal,
        supports_try_convert,
        supports_unicode_string_literal,
        supports_values_as_table_factor,
        supports_window_clause_named_window_reference,
        supports_window_function_null_treatment_arg,
    ];
}

/// Whether an `IS [NOT] DISTINCT FROM` without parentheses is what other forms of IS, or none, were put behind.
fn is_chained(mut expr: &Expr) -> bool {
    loop {
        expr = match expr {
            Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => return true,
            Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner) => inner,
            _ => return false,
        };
    }
}

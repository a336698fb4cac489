//! What a filter does not let through, as a predicate: a file in which no row satisfies it needs
//! the filter no more.
//!
//! Invariant: the predicate is satisfied by every row for which the filter is FALSE or NULL; what
//! cannot be said so is [`Predicate::True`].

use std::sync::Arc;

use datafusion::logical_expr::{Expr, Operator};

use super::opaque::seen_through;
use super::{Converter, MAX_DEPTH, chain};
use crate::table::{Column, Predicate, Test};

/// The predicate of the rows that `filter` does not let through, on a table of these columns.
pub fn misses(filter: &Expr, columns: &[Arc<Column>]) -> Predicate {
    let (converter, filter) = (Converter { columns }, seen_through(filter));
    match converter.nulls(&filter, MAX_DEPTH) {
        Some(nulls) => Predicate::or([converter.convert(&filter, false, MAX_DEPTH), nulls]),
        None => Predicate::True,
    }
}

impl Converter<'_> {
    /// A predicate that holds for every row for which `expr` is NULL; `None` where that is not known.
    fn nulls(&self, expr: &Expr, depth: usize) -> Option<Predicate> {
        let depth = depth.checked_sub(1)?;
        match expr {
            Expr::Literal(value, _) if !value.is_null() => Some(Predicate::False),
            Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_) => Some(Predicate::False),
            Expr::Alias(alias) => self.nulls(&alias.expr, depth),
            Expr::Not(inner) => self.nulls(inner, depth),
            Expr::BinaryExpr(binary) => match binary.op {
                Operator::And | Operator::Or => {
                    let parts = chain(expr, binary.op)?.into_iter().map(|part| self.nulls(part, depth));
                    Some(Predicate::or(parts.collect::<Option<Vec<_>>>()?))
                }
                Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
                    self.any_null([binary.left.as_ref(), binary.right.as_ref()], depth)
                }
                Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => Some(Predicate::False),
                _ => None,
            },
            Expr::Between(between) => self.any_null([between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()], depth),
            Expr::InList(list) => self.any_null(std::iter::once(list.expr.as_ref()).chain(&list.list), depth),
            Expr::Like(like) => self.any_null([like.expr.as_ref(), like.pattern.as_ref()], depth),
            Expr::ScalarFunction(call) if matches!(call.func.name(), "starts_with" | "isnan") => self.any_null(&call.args, depth),
            // A cast that fails is an error, unlike one that is tried.
            Expr::Cast(cast) => self.nulls(&cast.expr, depth),
            Expr::Column(_) => self.is_null(expr),
            Expr::ScalarFunction(call) if call.func.name() == "get_field" => self.is_null(expr),
            _ => None,
        }
    }

    fn any_null<'e>(&self, parts: impl IntoIterator<Item = &'e Expr>, depth: usize) -> Option<Predicate> {
        let parts = parts.into_iter().map(|part| self.nulls(part, depth));
        Some(Predicate::or(parts.collect::<Option<Vec<_>>>()?))
    }

    fn is_null(&self, column: &Expr) -> Option<Predicate> {
        Some(Predicate::Term(self.operand(column)?.id, Test::IsNull))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::{col, lit, try_cast};

    use super::*;
    use crate::table::{Comparison, Datum};

    fn of(filter: &Expr) -> Predicate {
        let column = |id, name: &str, data_type| {
            Arc::new(Column {
                id,
                field: Arc::new(Field::new(name, data_type, true)),
                names: Vec::new(),
                initial_default: None,
                children: Vec::new(),
            })
        };
        misses(filter, &[column(1, "i", DataType::Int32), column(2, "b", DataType::Boolean)])
    }

    fn compare(comparison: Comparison, value: i128) -> Predicate {
        Predicate::Term(1, Test::Compare(comparison, Datum::Number(value)))
    }

    fn null(id: i32) -> Predicate {
        Predicate::Term(id, Test::IsNull)
    }

    #[test]
    fn a_comparison_misses_its_opposite_and_nulls() {
        assert_eq!(of(&col("i").lt(lit(5))), Predicate::Or(vec![compare(Comparison::GtEq, 5), null(1)]));
        assert_eq!(of(&!col("i").lt(lit(5))), Predicate::Or(vec![compare(Comparison::Lt, 5), null(1)]));
        let truth = Predicate::Term(2, Test::Compare(Comparison::Eq, Datum::Boolean(false)));
        assert_eq!(of(&col("b")), Predicate::Or(vec![truth, null(2)]));
        let not_in = Predicate::Term(1, Test::NotIn(vec![Datum::Number(1), Datum::Number(2)]));
        assert_eq!(
            of(&col("i").in_list(vec![lit(1), lit(2)], false)),
            Predicate::Or(vec![not_in, null(1)])
        );
    }

    #[test]
    fn null_tests_are_never_null() {
        assert_eq!(of(&col("i").is_null()), Predicate::Term(1, Test::NotNull));
        assert_eq!(of(&col("i").is_not_null()), null(1));
    }

    #[test]
    fn what_may_be_null_or_is_not_known_misses_anything() {
        let nothing = lit(ScalarValue::Int32(None));
        assert_eq!(of(&col("i").lt(nothing.clone())), Predicate::True);
        assert_eq!(of(&col("i").in_list(vec![lit(1), nothing], false)), Predicate::True);
        assert_eq!(of(&try_cast(col("i"), DataType::Int64).lt(lit(5i64))), Predicate::True);
        assert_eq!(of(&(col("i") + lit(1)).lt(lit(5))), Predicate::True);
        assert_eq!(of(&col("i").lt(lit(5)).or(col("j").lt(lit(5)))), Predicate::True);
    }
}

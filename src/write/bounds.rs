//! Bounds that are cut (spec "Data File Fields", notes on `lower_bounds` and `upper_bounds`).
//!
//! A cut lower bound is at most, a cut upper bound at least, every value it stands for; where no shorter
//! text or bytes lie above a value, there is no upper bound.

use crate::iceberg::spec::Literal;

/// A lower bound of at most `length` characters or bytes.
pub(super) fn cut_lower(value: Literal, length: usize) -> Literal {
    match value {
        Literal::String(mut text) => {
            text.truncate(byte_length(&text, length));
            Literal::String(text)
        }
        Literal::Binary(mut bytes) => {
            bytes.truncate(length);
            Literal::Binary(bytes)
        }
        other => other,
    }
}

/// An upper bound of at most `length` characters or bytes.
pub(super) fn cut_upper(value: Literal, length: usize) -> Option<Literal> {
    match value {
        Literal::String(mut text) => {
            let kept = byte_length(&text, length);
            if kept == text.len() {
                return Some(Literal::String(text));
            }
            text.truncate(kept);
            while let Some(last) = text.pop() {
                if let Some(next) = next_character(last) {
                    text.push(next);
                    return Some(Literal::String(text));
                }
            }
            None
        }
        Literal::Binary(mut bytes) => {
            if bytes.len() <= length {
                return Some(Literal::Binary(bytes));
            }
            bytes.truncate(length);
            while let Some(last) = bytes.pop() {
                if let Some(next) = last.checked_add(1) {
                    bytes.push(next);
                    return Some(Literal::Binary(bytes));
                }
            }
            None
        }
        other => Some(other),
    }
}

/// Bytes of the first `characters` of a text.
fn byte_length(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

/// The next code point that can be in a text: surrogates cannot.
fn next_character(character: char) -> Option<char> {
    match u32::from(character) + 1 {
        0xd800 => char::from_u32(0xe000),
        next => char::from_u32(next),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(of: &str) -> Literal {
        Literal::String(of.to_owned())
    }

    #[test]
    fn texts_are_cut_by_characters_and_rounded_up() {
        assert_eq!(cut_lower(text("a🦀é€"), 2), text("a🦀"));
        assert_eq!(cut_upper(text("a🦀é€"), 2), Some(text("a🦁")));
        assert_eq!(cut_upper(text("a🦀"), 2), Some(text("a🦀")));
        assert_eq!(cut_upper(text("az\u{10FFFF}b"), 3), Some(text("a{")));
        assert_eq!(cut_upper(text("a\u{D7FF}b"), 2), Some(text("a\u{E000}")));
        assert_eq!(cut_upper(text("\u{10FFFF}\u{10FFFF}\u{10FFFF}"), 2), None);
        assert_eq!(cut_upper(text(""), 2), Some(text("")));
    }

    #[test]
    fn bytes_are_cut_and_rounded_up() {
        let bytes = |of: &[u8]| Literal::Binary(of.to_vec());
        assert_eq!(cut_lower(bytes(&[1, 2, 3]), 2), bytes(&[1, 2]));
        assert_eq!(cut_upper(bytes(&[1, 2, 3]), 2), Some(bytes(&[1, 3])));
        assert_eq!(cut_upper(bytes(&[1, 255, 3]), 2), Some(bytes(&[2])));
        assert_eq!(cut_upper(bytes(&[255, 255, 3]), 2), None);
        assert_eq!(cut_upper(bytes(&[255, 255]), 2), Some(bytes(&[255, 255])));
        assert_eq!(cut_upper(Literal::Int(7), 1), Some(Literal::Int(7)));
    }

    proptest! {
        #[test]
        fn a_cut_text_still_bounds(value in "[\\u{0}-\\u{10FFFF}]{0,12}", length in 1_usize..8) {
            let lower = cut_lower(text(&value), length);
            prop_assert!(lower.order(&text(&value)).is_le());
            if let Some(upper) = cut_upper(text(&value), length) {
                prop_assert!(upper.order(&text(&value)).is_ge());
                let Literal::String(upper) = upper else { unreachable!() };
                prop_assert!(upper.chars().count() <= length);
            } else {
                prop_assert!(value.chars().take(length).all(|c| c == char::MAX));
            }
        }

        #[test]
        fn cut_bytes_still_bound(value in proptest::collection::vec(any::<u8>(), 0..12), length in 1_usize..8) {
            let value = Literal::Binary(value);
            prop_assert!(cut_lower(value.clone(), length).order(&value).is_le());
            if let Some(upper) = cut_upper(value.clone(), length) {
                prop_assert!(upper.order(&value).is_ge());
            }
        }
    }
}

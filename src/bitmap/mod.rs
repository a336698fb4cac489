//! Sets of row positions: roaring codecs and masks.

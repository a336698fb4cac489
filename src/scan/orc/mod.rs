//! ORC files (ORC specification v1), decoded by `orc-rust`.
//!
//! `orc-rust` trusts lengths and decompresses without limit, and knows neither field ids nor the
//! projection of nested columns. So it never sees a file: tail, stripe footers and streams are
//! read and checked here, streams are decompressed here with caps, numbers of values are followed
//! through the column tree, and what it decodes is a small uncompressed file of one stripe that
//! holds the wanted columns alone. A panic of it is an error that names the file.

mod check;
mod codec;
mod integers;
mod proto;
mod stripe;
mod tail;
#[cfg(test)]
mod tests;
mod types;
mod values;

pub(super) use stripe::StripeUnit;
pub(super) use tail::{OrcFile, open};

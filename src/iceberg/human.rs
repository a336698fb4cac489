//! Partition values as text, as Iceberg Java writes them in partition summaries and paths.

use arrow::temporal_conversions::{timestamp_ns_to_datetime, timestamp_s_to_datetime, timestamp_us_to_datetime};

use crate::iceberg::spec::{Literal, PrimitiveType, Transform};

/// The text of a partition value of this transform and result type; `null` for none.
pub(super) fn human(transform: &Transform, primitive: &PrimitiveType, value: Option<&Literal>) -> String {
    use PrimitiveType as P;
    let Some(value) = value else {
        return "null".to_owned();
    };
    let text = match (transform, primitive, value) {
        (Transform::Void, ..) => Some("null".to_owned()),
        (Transform::Year, _, Literal::Int(years)) => Some(format!("{:04}", 1970 + i64::from(*years))),
        (Transform::Month, _, Literal::Int(months)) => {
            let months = i64::from(*months);
            Some(format!("{:04}-{:02}", 1970 + months.div_euclid(12), 1 + months.rem_euclid(12)))
        }
        (Transform::Hour, _, Literal::Int(hours)) => seconds(i64::from(*hours) * 3600, "%Y-%m-%d-%H"),
        (_, P::Date, Literal::Int(days)) => seconds(i64::from(*days) * 86_400, "%Y-%m-%d"),
        (_, P::Time, Literal::Long(micros)) => timestamp_us_to_datetime(*micros).map(|t| {
            let pattern = match micros % 60_000_000 {
                0 => "%H:%M",
                rest if rest % 1_000_000 == 0 => "%H:%M:%S",
                rest if rest % 1_000 == 0 => "%H:%M:%S%.3f",
                _ => "%H:%M:%S%.6f",
            };
            t.format(pattern).to_string()
        }),
        (_, P::Timestamp | P::Timestamptz, Literal::Long(micros)) => timestamp_us_to_datetime(*micros).map(|t| {
            let text = trimmed(&t.format("%Y-%m-%dT%H:%M:%S").to_string(), micros.rem_euclid(1_000_000), 6);
            zoned(text, *primitive == P::Timestamptz)
        }),
        (_, P::TimestampNs | P::TimestamptzNs, Literal::Long(nanos)) => timestamp_ns_to_datetime(*nanos).map(|t| {
            let text = trimmed(&t.format("%Y-%m-%dT%H:%M:%S").to_string(), nanos.rem_euclid(1_000_000_000), 9);
            zoned(text, *primitive == P::TimestamptzNs)
        }),
        (_, P::Decimal { scale, .. }, Literal::Decimal(unscaled)) => Some(decimal(*unscaled, usize::from(*scale))),
        (_, _, Literal::Boolean(v)) => Some(v.to_string()),
        (_, _, Literal::Int(v)) => Some(v.to_string()),
        (_, _, Literal::Long(v)) => Some(v.to_string()),
        (_, _, Literal::Float(v)) => Some(float(f64::from(*v), &format!("{v:e}"))),
        (_, _, Literal::Double(v)) => Some(float(*v, &format!("{v:e}"))),
        (_, _, Literal::String(v)) => Some(v.clone()),
        (_, _, Literal::Uuid(v)) => Some(uuid::Uuid::from_bytes(*v).to_string()),
        (_, _, Literal::Binary(v)) => Some(base64(v)),
        _ => None,
    };
    text.unwrap_or_else(|| format!("{value:?}"))
}

fn seconds(seconds: i64, pattern: &str) -> Option<String> {
    timestamp_s_to_datetime(seconds).map(|t| t.format(pattern).to_string())
}

/// Adds a fraction without the zeros at its end.
fn trimmed(text: &str, fraction: i64, digits: usize) -> String {
    if fraction == 0 {
        return text.to_owned();
    }
    let fraction = format!("{fraction:0digits$}");
    format!("{text}.{}", fraction.trim_end_matches('0'))
}

fn zoned(text: String, with_zone: bool) -> String {
    if with_zone { text + "+00:00" } else { text }
}

/// A float as Java writes it; `scientific` is its shortest form with an exponent.
fn float(value: f64, scientific: &str) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !(-3..7).contains(&exponent) {
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        return format!("{sign}{whole}.{fraction}E{exponent}");
    }
    let digits = format!("{whole}{fraction}");
    let shift = exponent.unsigned_abs() as usize;
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(shift - 1));
    }
    let padded = format!("{digits:0<width$}", width = shift + 2);
    let (whole, fraction) = padded.split_at(shift + 1);
    format!("{sign}{whole}.{fraction}")
}

/// A decimal as Java writes it: with an exponent where many zeros would lead.
fn decimal(unscaled: i128, scale: usize) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let plain = unscaled.unsigned_abs().to_string();
    if plain.len() + 5 < scale {
        let exponent = scale + 1 - plain.len();
        let (first, rest) = plain.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E-{exponent}");
    }
    let digits = format!("{plain:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

/// RFC 4648 with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                let digit = (word >> (18 - 6 * i)) & 63;
                text.push(ALPHABET.get(digit as usize).copied().map_or('=', char::from));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_and_small_decimals_read_as_java_writes_them() {
        let double = |v| human(&Transform::Identity, &PrimitiveType::Double, Some(&Literal::Double(v)));
        for (value, text) in [
            (1.5, "1.5"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (1_234_567.0, "1234567.0"),
            (1e7, "1.0E7"),
            (1.25e20, "1.25E20"),
            (0.001, "0.001"),
            (0.000_123, "1.23E-4"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(double(value), text);
        }
        let float = human(&Transform::Identity, &PrimitiveType::Float, Some(&Literal::Float(0.1)));
        assert_eq!(float, "0.1");
        let scaled = PrimitiveType::Decimal { precision: 20, scale: 10 };
        let decimal = |v| human(&Transform::Identity, &scaled, Some(&Literal::Decimal(v)));
        assert_eq!(decimal(12), "1.2E-9");
        assert_eq!(decimal(-5), "-5E-10");
        assert_eq!(decimal(12_345), "0.0000012345");
        assert_eq!(decimal(0), "0E-10");
    }

    #[test]
    fn values_read_as_iceberg_java_writes_them() {
        use PrimitiveType as P;
        let of = |transform, primitive: P, value| human(&transform, &primitive, Some(&value));
        assert_eq!(of(Transform::Year, P::Int, Literal::Int(47)), "2017");
        assert_eq!(of(Transform::Month, P::Int, Literal::Int(-1)), "1969-12");
        assert_eq!(of(Transform::Day, P::Date, Literal::Int(17501)), "2017-12-01");
        assert_eq!(of(Transform::Hour, P::Int, Literal::Int(-1)), "1969-12-31-23");
        let timestamp = Literal::Long(1_512_123_175_038_194);
        assert_eq!(
            of(Transform::Identity, P::Timestamptz, timestamp.clone()),
            "2017-12-01T10:12:55.038194+00:00"
        );
        assert_eq!(of(Transform::Identity, P::Timestamp, timestamp), "2017-12-01T10:12:55.038194");
        assert_eq!(
            of(Transform::Identity, P::Timestamp, Literal::Long(-500_000)),
            "1969-12-31T23:59:59.5"
        );
        assert_eq!(of(Transform::Identity, P::Time, Literal::Long(36_775_038_194)), "10:12:55.038194");
        assert_eq!(of(Transform::Identity, P::Time, Literal::Long(60_000_000)), "00:01");
        let scaled = P::Decimal { precision: 9, scale: 2 };
        assert_eq!(of(Transform::Identity, scaled.clone(), Literal::Decimal(-150)), "-1.50");
        assert_eq!(of(Transform::Truncate(10), scaled, Literal::Decimal(5)), "0.05");
        assert_eq!(of(Transform::Identity, P::Binary, Literal::Binary(vec![1, 2, 3])), "AQID");
        assert_eq!(of(Transform::Identity, P::Binary, Literal::Binary(vec![255])), "/w==");
        assert_eq!(of(Transform::Bucket(4), P::Int, Literal::Int(3)), "3");
        assert_eq!(human(&Transform::Identity, &P::Int, None), "null");
    }
}

//! Dates and times of day in the proleptic Gregorian calendar, exact over the range of the
//! types: ISO-8601 text to days or units since the epoch and back (spec appendix D, JSON).
//!
//! `digits` is the number of fractional digits of the unit: 6 for micro-, 9 for nanoseconds.
//! A text with more precision than its unit holds is refused, not truncated.

/// Days from 1970-01-01 of a date; months and days count from 1. Valid for any year an `i32` of days reaches.
pub(in crate::iceberg) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March, so that the leap day is the last one of its year.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days from 1970-01-01.
pub(super) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Units per second.
fn scale(digits: u32) -> i64 {
    10_i64.pow(digits.min(9))
}

fn number(text: &str, widths: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let plain = widths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Days from the epoch of `2017-11-16`; years beyond 9999 and before 0 carry a sign.
pub(super) fn parse_date(text: &str) -> Option<i32> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (rest, day) = body.rsplit_once('-')?;
    let (year, month) = rest.rsplit_once('-')?;
    let year = number(year, 4..=9)?;
    let year = if negative { -year } else { year };
    let (month, day) = (number(month, 2..=2)?, number(day, 2..=2)?);
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    i32::try_from(days_from_civil(year, month, day)).ok()
}

/// `2017-11-16` of days from the epoch.
pub(super) fn format_date(days: i32) -> String {
    let (year, month, day) = civil_from_days(i64::from(days));
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        10_000.. => format!("+{year}-{month:02}-{day:02}"),
        _ => format!("-{:04}-{month:02}-{day:02}", -year),
    }
}

/// Units from midnight of `22:31:08.123456`; seconds and fraction may be missing.
pub(super) fn parse_time(text: &str, digits: u32) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let mut parts = clock.split(':');
    let hour = number(parts.next()?, 2..=2)?;
    let minute = number(parts.next()?, 2..=2)?;
    let second = match (parts.next(), fraction) {
        (Some(second), _) => number(second, 2..=2)?,
        (None, Some(_)) => return None,
        (None, None) => 0,
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanos = match fraction {
        None => 0,
        Some(f) => number(f, 1..=9)? * 10_i64.pow(9 - u32::try_from(f.len()).ok()?),
    };
    let nanos_per_unit = 1_000_000_000 / scale(digits);
    if nanos % nanos_per_unit != 0 {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * scale(digits) + nanos / nanos_per_unit)
}

/// `22:31:08.123456` of units from midnight; `None` outside of a day.
pub(super) fn format_time(units: i64, digits: u32) -> Option<String> {
    let scale = scale(digits);
    if !(0..86_400 * scale).contains(&units) {
        return None;
    }
    let (second, fraction) = (units / scale, units % scale);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let width = usize::try_from(digits).ok()?;
    Some(format!("{hour:02}:{minute:02}:{second:02}.{fraction:0width$}"))
}

/// Units from the epoch of `2017-11-16T22:31:08.123456`.
pub(super) fn parse_timestamp(text: &str, digits: u32) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't'])?;
    let days = i128::from(parse_date(date)?);
    let time = i128::from(parse_time(time, digits)?);
    // The first and last day of the range of nanoseconds fit only together with their time.
    i64::try_from(days * 86_400 * i128::from(scale(digits)) + time).ok()
}

/// Units from the epoch of `2017-11-16T22:31:08.123456+00:00`; any other offset is refused.
pub(super) fn parse_timestamptz(text: &str, digits: u32) -> Option<i64> {
    let bare = ["+00:00", "-00:00", "Z", "z"].iter().find_map(|zone| text.strip_suffix(zone))?;
    parse_timestamp(bare, digits)
}

/// `2017-11-16T22:31:08.123456` of units from the epoch.
pub(super) fn format_timestamp(units: i64, digits: u32) -> Option<String> {
    let day = 86_400 * scale(digits);
    let date = format_date(i32::try_from(units.div_euclid(day)).ok()?);
    Some(format!("{date}T{}", format_time(units.rem_euclid(day), digits)?))
}

/// `2017-11-16T22:31:08.123456+00:00` of units from the epoch.
pub(super) fn format_timestamptz(units: i64, digits: u32) -> Option<String> {
    format_timestamp(units, digits).map(|text| text + "+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_days() {
        // 17486 and 1510871468000000 are the numbers behind the hashes of the spec's appendix B.
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2017-11-16", 17_486),
            ("0001-01-01", -719_162),
            ("0000-02-29", -719_469),
            ("9999-12-31", 2_932_896),
            ("+10000-01-01", 2_932_897),
            ("-0001-12-31", -719_529),
        ] {
            assert_eq!(parse_date(text), Some(days), "{text}");
            assert_eq!(format_date(days), text);
        }
        assert_eq!(parse_date(&format_date(i32::MAX)), Some(i32::MAX));
        assert_eq!(format_date(i32::MAX), "+5881580-07-11");
        assert_eq!(format_date(i32::MIN), "-5877641-06-23");
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        for text in [
            "1900-02-29",
            "2023-02-30",
            "2023-13-01",
            "2023-00-10",
            "2023-1-1",
            "23-01-01",
            "2023-01-00",
            "",
            "-",
            "2023-01-01 ",
            "+5881580-07-12",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn times_of_day() {
        assert_eq!(parse_time("22:31:08", 6), Some(81_068_000_000));
        assert_eq!(parse_time("22:31:08.123456", 6), Some(81_068_123_456));
        assert_eq!(parse_time("22:31:08.5", 6), Some(81_068_500_000));
        assert_eq!(parse_time("22:31", 6), Some(81_060_000_000));
        assert_eq!(parse_time("22:31:08.123456000", 6), Some(81_068_123_456));
        assert_eq!(format_time(81_068_123_456, 6).as_deref(), Some("22:31:08.123456"));
        for text in [
            "22:31:08.1234567",
            "24:00:00",
            "22:60:00",
            "22:31:60",
            "22:31:08.",
            "22",
            "22:31.5",
            "1:02:03",
            "22:31:08:01",
        ] {
            assert_eq!(parse_time(text, 6), None, "{text}");
        }
        assert_eq!(format_time(86_400_000_000, 6), None);
        assert_eq!(format_time(-1, 6), None);
    }

    #[test]
    fn timestamps() {
        assert_eq!(parse_timestamp("2017-11-16T22:31:08", 6), Some(1_510_871_468_000_000));
        assert_eq!(
            parse_timestamptz("2017-11-16T22:31:08.000001+00:00", 6),
            Some(1_510_871_468_000_001)
        );
        assert_eq!(
            parse_timestamptz("2017-11-16T22:31:08.000001001Z", 9),
            Some(1_510_871_468_000_001_001)
        );
        assert_eq!(parse_timestamp("1969-12-31T23:59:59.5", 6), Some(-500_000));
        assert_eq!(format_timestamp(-1, 6).as_deref(), Some("1969-12-31T23:59:59.999999"));
        assert_eq!(format_timestamptz(-1, 9).as_deref(), Some("1969-12-31T23:59:59.999999999+00:00"));
        assert_eq!(format_timestamp(i64::MIN, 9).as_deref(), Some("1677-09-21T00:12:43.145224192"));
        assert_eq!(parse_timestamp("1677-09-21T00:12:43.145224192", 9), Some(i64::MIN));
        assert_eq!(parse_timestamp("1677-09-21T00:12:43.145224191", 9), None);
        assert_eq!(parse_timestamp("2017-11-16T22:31:08+00:00", 6), None);
        assert_eq!(parse_timestamptz("2017-11-16T22:31:08", 6), None);
        assert_eq!(parse_timestamptz("2017-11-16T22:31:08-08:00", 6), None);
        assert_eq!(parse_timestamp("2017-11-16 22:31:08", 6), None);
    }

    proptest! {
        #[test]
        fn any_value_comes_back(days: i32, micros: i64, nanos: i64) {
            prop_assert_eq!(parse_date(&format_date(days)), Some(days));
            let text = format_timestamp(micros, 6).unwrap();
            prop_assert_eq!(parse_timestamp(&text, 6), Some(micros));
            let text = format_timestamptz(nanos, 9).unwrap();
            prop_assert_eq!(parse_timestamptz(&text, 9), Some(nanos));
        }

        #[test]
        fn foreign_text_never_panics(text in "\\PC{0,40}") {
            let _ = (parse_date(&text), parse_timestamptz(&text, 9), parse_time(&text, 6));
        }
    }
}

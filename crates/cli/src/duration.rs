use std::time::Duration;

/// Reads `10` (seconds), `0.5`, `500ms`, `2s`, `1m`, `1.5h`, `1d`, and several with units together, such as `1h30m`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let (mut rest, mut sum) = (text, Duration::ZERO);
    loop {
        let (number, behind) = rest.split_at(rest.find(|c| !is_of_number(c)).unwrap_or(rest.len()));
        let (unit, behind) = behind.split_at(behind.find(is_of_number).unwrap_or(behind.len()));
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "" if rest == text => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err("write 10, 0.5, 500ms, 2s, 1m, 1.5h, 1h30m or 1d".to_owned()),
        };
        // With digits and dots alone, "inf", "nan" and exponents cannot get in.
        let number: f64 = number.parse().map_err(|_| "it has no number before the unit".to_owned())?;
        let part = Duration::try_from_secs_f64(number * seconds).ok();
        sum = part.and_then(|part| sum.checked_add(part)).ok_or("it is too long")?;
        if behind.is_empty() {
            return Ok(sum);
        }
        rest = behind;
    }
}

/// Reads a duration like [`parse`], and refuses zero.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, String> {
    parse(text)
        .and_then(|duration| if duration.is_zero() { Err("it must not be zero".to_owned()) } else { Ok(duration) })
}

/// Formats a duration for people: `340 ms`, `2.4 s`, `1 m 20 s`, `3 h 5 m`.
pub(crate) fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..=9 => format!("{}.{} s", seconds, duration.subsec_millis() / 100),
        10..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} m {} s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{} h {} m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// The duration in whole milliseconds, for the JSON output.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_testkit::corpus_of_text;

    #[test]
    fn numbers_with_and_without_units_are_read() {
        for (text, millis) in [
            ("10", 10_000),
            ("0", 0),
            ("0.5", 500),
            (".5", 500),
            ("500ms", 500),
            ("2s", 2000),
            ("1.25s", 1250),
            ("1m", 60_000),
            ("2min", 120_000),
            ("1.5h", 5_400_000),
            ("1d", 86_400_000),
            ("1h30m", 5_400_000),
            ("1m1s500ms", 61_500),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn whatever_duration_is_given_it_is_read_or_refused() {
        corpus_of_text(include_str!("../corpus/durations.txt"), |text| {
            if let Ok(duration) = parse(text) {
                assert!(text.starts_with(|c: char| c.is_ascii_digit() || c == '.'), "{text}");
                let _ = (spoken(duration), millis(duration));
            }
        });
    }

    #[test]
    fn anything_else_is_refused() {
        let huge = "9".repeat(400);
        for text in [
            "", ".", "-1", "+1", "1 s", " 1", "1e3", "inf", "nan", "1.2.3", "s", "ms", "5x", "5S", "é", "1h30", "1h m",
            "h1m", &huge,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse_positive("0").is_err());
        assert!(parse_positive("1ms").is_ok());
    }

    #[test]
    fn durations_are_spoken_in_the_unit_that_matters() {
        for (millis, words) in [
            (0, "0 ms"),
            (340, "340 ms"),
            (2449, "2.4 s"),
            (59_999, "59 s"),
            (80_000, "1 m 20 s"),
            (11_100_000, "3 h 5 m"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(spoken(Duration::from_millis(millis)), words);
        }
    }
}

//! `printf` formatting: C formats with the argument buffer that the compiler packs.
//!
//! The buffer holds each argument at its natural alignment: 4 bytes for `int`, 8 for `long`, `double` and
//! pointers. All host executors use this code, so their output is identical.

/// Memory of a kernel, as device functions read it.
pub trait KernelMemory {
    /// Error of a read.
    type Error;

    /// Reads bytes at a generic address.
    fn bytes<const N: usize>(&mut self, address: u64) -> Result<[u8; N], Self::Error>;

    /// Reads a C string at a generic address, without its zero.
    fn string(&mut self, address: u64) -> Result<Vec<u8>, Self::Error>;
}

/// Maximum padding width, so that a malicious format costs no more than its text.
const MAX_WIDTH: usize = 4096;

/// Conversion of a format: `%-08.3lf`.
#[derive(Clone, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// Size of an integer argument in bytes: 8, 4, or 2 and 1 for truncated ones.
    bytes: u32,
    conversion: u8,
}

/// Formats a text with its arguments in a buffer at an address. Returns the text and the number of arguments
/// used.
pub fn format_printf<M: KernelMemory>(memory: &mut M, format: &[u8], arguments: u64) -> Result<(Vec<u8>, u64), M::Error> {
    let mut text = vec![];
    let (mut at, mut next, mut count) = (0, arguments, 0u64);
    while at < format.len() {
        if format[at] != b'%' {
            text.push(format[at]);
            at += 1;
            continue;
        }
        let start = at;
        let mut stars = vec![];
        let Some((mut spec, end)) = read_spec(format, at, &mut stars) else {
            text.extend_from_slice(&format[start..]);
            break;
        };
        at = end;
        if spec.conversion == b'%' {
            text.push(b'%');
            continue;
        }
        for is_precision in stars {
            let value = i32::from_le_bytes(argument::<M, 4>(memory, &mut next)?);
            count += 1;
            if is_precision {
                spec.precision = usize::try_from(value).ok().map(|value| value.min(MAX_WIDTH));
            } else {
                spec.left |= value < 0;
                spec.width = (value.unsigned_abs() as usize).min(MAX_WIDTH);
            }
        }
        count += 1;
        let piece = match spec.conversion {
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => {
                let bits = if spec.bytes == 8 {
                    u64::from_le_bytes(argument::<M, 8>(memory, &mut next)?)
                } else {
                    u64::from(u32::from_le_bytes(argument::<M, 4>(memory, &mut next)?))
                };
                integer(&spec, bits)
            }
            b'c' => {
                let value = argument::<M, 4>(memory, &mut next)?[0];
                pad(&spec, vec![], vec![value], false)
            }
            b's' => {
                let address = u64::from_le_bytes(argument::<M, 8>(memory, &mut next)?);
                let mut string = if address == 0 { b"(null)".to_vec() } else { memory.string(address)? };
                string.truncate(spec.precision.unwrap_or(usize::MAX));
                pad(&spec, vec![], string, false)
            }
            b'p' => {
                let address = u64::from_le_bytes(argument::<M, 8>(memory, &mut next)?);
                let text = if address == 0 { "(nil)".to_owned() } else { format!("{address:#x}") };
                pad(&spec, vec![], text.into_bytes(), false)
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_le_bytes(argument::<M, 8>(memory, &mut next)?);
                float(&spec, value)
            }
            // Anything else is not a conversion and is printed unchanged.
            _ => {
                count -= 1;
                format[start..end].to_vec()
            }
        };
        text.extend_from_slice(&piece);
    }
    Ok((text, count))
}

fn argument<M: KernelMemory, const N: usize>(memory: &mut M, next: &mut u64) -> Result<[u8; N], M::Error> {
    let at = next.next_multiple_of(N as u64);
    *next = at.wrapping_add(N as u64);
    memory.bytes::<N>(at)
}

fn read_spec(format: &[u8], start: usize, stars: &mut Vec<bool>) -> Option<(Spec, usize)> {
    let mut spec = Spec { bytes: 4, ..Spec::default() };
    let mut at = start + 1;
    loop {
        match format.get(at)? {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        at += 1;
    }
    let number = |at: &mut usize| {
        let mut value = 0usize;
        while let Some(digit @ b'0'..=b'9') = format.get(*at) {
            value = (value * 10 + usize::from(digit - b'0')).min(MAX_WIDTH);
            *at += 1;
        }
        value
    };
    if format.get(at) == Some(&b'*') {
        stars.push(false);
        at += 1;
    } else {
        spec.width = number(&mut at);
    }
    if format.get(at) == Some(&b'.') {
        at += 1;
        if format.get(at) == Some(&b'*') {
            stars.push(true);
            at += 1;
        } else {
            spec.precision = Some(number(&mut at));
        }
    }
    while let Some(length @ (b'h' | b'l' | b'j' | b'z' | b't' | b'L' | b'q')) = format.get(at) {
        // `h` and `hh` are promoted to `int` and truncated when printed; `long` has 8 bytes.
        spec.bytes = match (length, spec.bytes) {
            (b'h', 2) => 1,
            (b'h', _) => 2,
            (_, _) => 8,
        };
        at += 1;
    }
    spec.conversion = *format.get(at)?;
    Some((spec, at + 1))
}

fn pad(spec: &Spec, sign: Vec<u8>, body: Vec<u8>, zeros: bool) -> Vec<u8> {
    let fill = spec.width.saturating_sub(sign.len() + body.len());
    let mut text = vec![];
    if spec.left {
        text.extend(sign);
        text.extend(body);
        text.extend(std::iter::repeat_n(b' ', fill));
    } else if zeros {
        text.extend(sign);
        text.extend(std::iter::repeat_n(b'0', fill));
        text.extend(body);
    } else {
        text.extend(std::iter::repeat_n(b' ', fill));
        text.extend(sign);
        text.extend(body);
    }
    text
}

fn sign(spec: &Spec, negative: bool) -> Vec<u8> {
    let sign: &[u8] = match (negative, spec.plus, spec.space) {
        (true, ..) => b"-",
        (false, true, _) => b"+",
        (false, false, true) => b" ",
        (false, false, false) => b"",
    };
    sign.to_vec()
}

fn integer(spec: &Spec, bits: u64) -> Vec<u8> {
    let unused = 64 - 8 * spec.bytes.clamp(1, 8);
    let signed = (bits << unused) as i64 >> unused;
    let bits = bits << unused >> unused;
    let (mut prefix, mut digits) = match spec.conversion {
        b'd' | b'i' => (sign(spec, signed < 0), signed.unsigned_abs().to_string()),
        b'u' => (vec![], bits.to_string()),
        b'o' => (vec![], format!("{bits:o}")),
        b'x' => (vec![], format!("{bits:x}")),
        _ => (vec![], format!("{bits:X}")),
    };
    if let Some(precision) = spec.precision {
        if precision == 0 && digits == "0" {
            digits.clear();
        }
        digits.insert_str(0, &"0".repeat(precision.saturating_sub(digits.len())));
    }
    match spec.conversion {
        b'o' if spec.alternate && !digits.starts_with('0') => digits.insert(0, '0'),
        b'x' if spec.alternate && bits != 0 => prefix.extend(b"0x"),
        b'X' if spec.alternate && bits != 0 => prefix.extend(b"0X"),
        _ => {}
    }
    pad(spec, prefix, digits.into_bytes(), spec.zero && spec.precision.is_none())
}

fn float(spec: &Spec, value: f64) -> Vec<u8> {
    let upper = spec.conversion.is_ascii_uppercase();
    let case = |text: String| if upper { text.to_uppercase().into_bytes() } else { text.into_bytes() };
    let sign = sign(spec, value.is_sign_negative() && !value.is_nan() || value.is_nan() && value.is_sign_negative());
    let magnitude = value.abs();
    if !value.is_finite() {
        let text = if value.is_nan() { "nan" } else { "inf" };
        return pad(spec, sign, case(text.to_owned()), false);
    }
    let precision = spec.precision.unwrap_or(6);
    let text = match spec.conversion.to_ascii_lowercase() {
        b'f' => fixed(magnitude, precision, spec.alternate),
        b'e' => exponential(magnitude, precision, spec.alternate),
        b'g' => general(magnitude, precision.max(1), spec.alternate),
        _ => hexadecimal(magnitude, spec.precision),
    };
    pad(spec, sign, case(text), spec.zero)
}

fn fixed(value: f64, precision: usize, point: bool) -> String {
    let mut text = format!("{value:.precision$}");
    if point && precision == 0 {
        text.push('.');
    }
    text
}

fn exponential(value: f64, precision: usize, point: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let dot = if point && precision == 0 { "." } else { "" };
    let minus = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{dot}e{minus}{:02}", exponent.unsigned_abs())
}

fn general(value: f64, precision: usize, keep: bool) -> String {
    let scientific = exponential(value, precision - 1, keep);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let trim = |text: &str| match text.contains('.') && !keep {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let (mantissa, tail) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{tail}", trim(mantissa));
    }
    let decimals = usize::try_from(precision as i32 - 1 - exponent).unwrap_or(0);
    trim(&fixed(value, decimals, keep))
}

/// Formats `%a`: the mantissa in hexadecimal.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let mut mantissa = bits & ((1 << 52) - 1);
    let biased = (bits >> 52) as i32 & 0x7ff;
    let mut lead = u64::from(biased != 0);
    let exponent = match (biased, mantissa) {
        (0, 0) => 0,
        (0, _) => -1022,
        (biased, _) => biased - 1023,
    };
    let mut digits = 13;
    if let Some(precision) = precision.filter(|precision| *precision < 13) {
        let drop = 4 * (13 - precision) as u32;
        let whole = lead << 52 | mantissa;
        let (kept, rest) = (whole >> drop, whole & ((1 << drop) - 1));
        let half = 1u64 << (drop - 1);
        let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
        lead = rounded >> (4 * precision);
        mantissa = rounded & ((1u64 << (4 * precision)) - 1);
        digits = precision;
    }
    let mut text = if digits == 0 { String::new() } else { format!("{mantissa:0digits$x}") };
    match precision {
        None => text.truncate(text.trim_end_matches('0').len()),
        Some(precision) => text.push_str(&"0".repeat(precision.saturating_sub(digits))),
    }
    let dot = if text.is_empty() { "" } else { "." };
    format!("0x{lead}{dot}{text}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(format: &str, value: f64) -> String {
        let (spec, _) = read_spec(format.as_bytes(), 0, &mut vec![]).unwrap();
        String::from_utf8(float(&spec, value)).unwrap()
    }

    fn show_int(format: &str, value: i64) -> String {
        let (spec, _) = read_spec(format.as_bytes(), 0, &mut vec![]).unwrap();
        let bits = if spec.bytes == 8 { value as u64 } else { u64::from(value as u32) };
        String::from_utf8(integer(&spec, bits)).unwrap()
    }

    #[test]
    fn floats_as_c_writes_them() {
        assert_eq!(show("%f", 1.5), "1.500000");
        assert_eq!(show("%8.2f|", -1.555), "   -1.56".replace("1.56", "1.55"));
        assert_eq!(show("%e", 12345.678), "1.234568e+04");
        assert_eq!(show("%.0e", 0.0), "0e+00");
        assert_eq!(show("%g", 100_000.0), "100000");
        assert_eq!(show("%g", 1_000_000.0), "1e+06");
        assert_eq!(show("%g", 0.0001), "0.0001");
        assert_eq!(show("%g", 0.00001), "1e-05");
        assert_eq!(show("%G", f64::INFINITY), "INF");
        assert_eq!(show("%a", 1.0), "0x1p+0");
        assert_eq!(show("%a", 0.1), "0x1.999999999999ap-4");
        assert_eq!(show("%.2a", 0.1), "0x1.9ap-4");
        assert_eq!(show("%+08.1f", 2.25), "+00002.2");
    }

    #[test]
    fn integers_as_c_writes_them() {
        assert_eq!(show_int("%d", -5), "-5");
        assert_eq!(show_int("%u", -1), "4294967295");
        assert_eq!(show_int("%lld", -1), "-1");
        assert_eq!(show_int("%05d", -42), "-0042");
        assert_eq!(show_int("%-5d|", 42), "42   ");
        assert_eq!(show_int("%#x", 255), "0xff");
        assert_eq!(show_int("%.3d", 7), "007");
        assert_eq!(show_int("%#o", 8), "010");
        assert_eq!(show_int("%hd", 0x1_8000), "-32768");
        assert_eq!(show_int("%hu", -1), "65535");
        assert_eq!(show_int("%hhd", 0x1ff), "-1");
        assert_eq!(show_int("%hhx", 0x1ff), "ff");
        assert_eq!(show_int("% ld", 5), " 5");
    }
}

//! Values as text: how files write attributes.
//!
//! Python's literals, as NNVM's files have them. Text stands as it is unless it would read as something else.

use super::{DType, Value};
use std::fmt;

/// Levels of brackets that a file may nest.
const DEEPEST: usize = 64;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) if is_plain(text) => f.write_str(text),
            _ => written(self, f),
        }
    }
}

/// Whether a text reads as itself.
fn is_plain(text: &str) -> bool {
    matches!(parse(text), Value::Text(read) if *read == *text)
}

fn written(value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::None => f.write_str("None"),
        Value::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
        Value::Int(value) => write!(f, "{value}"),
        Value::Float(value) => float(*value, f),
        Value::Complex(real, imaginary) => {
            f.write_str("complex(")?;
            float(*real, f)?;
            f.write_str(", ")?;
            float(*imaginary, f)?;
            f.write_str(")")
        }
        Value::Text(text) => {
            f.write_str("'")?;
            for each in text.chars() {
                if matches!(each, '\'' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{each}")?;
            }
            f.write_str("'")
        }
        Value::DType(dtype) => write!(f, "dtype({dtype})"),
        Value::Tuple(values) => {
            sequence("(", values, f)?;
            f.write_str(if values.len() == 1 { ",)" } else { ")" })
        }
        Value::Slice(parts) => {
            sequence("slice(", &parts[..], f)?;
            f.write_str(")")
        }
        Value::Ellipsis => f.write_str("..."),
        Value::Input => f.write_str("_"),
        Value::Opaque(value) => write!(f, "{value:?}"),
    }
}

fn sequence(open: &str, values: &[Value], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(open)?;
    for (at, each) in values.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        written(each, f)?;
    }
    Ok(())
}

fn float(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if value.is_nan() {
        f.write_str("nan")
    } else if value.is_infinite() {
        f.write_str(if value > 0.0 { "inf" } else { "-inf" })
    } else {
        write!(f, "{value:?}")
    }
}

/// Reads a value: a literal, or else the text itself.
#[must_use]
pub fn parse(text: &str) -> Value {
    let mut reader = Reader { rest: text.trim(), depth: 0 };
    match reader.value() {
        Some(value) if reader.rest.trim().is_empty() => value,
        _ => Value::text(text),
    }
}

/// The text of a value as it is written where nothing else can stand: without quotes.
#[must_use]
pub fn unquoted(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::DType(dtype) => dtype.to_string(),
        _ => value.to_string(),
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let found = self.rest.trim_start().strip_prefix(token);
        if let Some(rest) = found {
            self.rest = rest;
        }
        found.is_some()
    }

    fn value(&mut self) -> Option<Value> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        match first {
            '(' | '[' => {
                self.rest = &self.rest[1..];
                Some(Value::Tuple(self.values(if first == '(' { ")" } else { "]" })?.into()))
            }
            '\'' | '"' => self.quoted(first),
            _ if self.takes("...") => Some(Value::Ellipsis),
            _ => self.word(),
        }
    }

    fn values(&mut self, close: &str) -> Option<Vec<Value>> {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let mut values = Vec::new();
        while !self.takes(close) {
            if !values.is_empty() {
                if !self.takes(",") {
                    return None;
                }
                if self.takes(close) {
                    break;
                }
            }
            values.push(self.value()?);
        }
        self.depth -= 1;
        Some(values)
    }

    fn quoted(&mut self, quote: char) -> Option<Value> {
        let mut text = String::new();
        let mut letters = self.rest.char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            if letter == quote {
                self.rest = &self.rest[at + 1..];
                return Some(Value::text(&text));
            }
            text.push(if letter == '\\' { letters.next()?.1 } else { letter });
        }
        None
    }

    fn word(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find(|each: char| matches!(each, '(' | ')' | '[' | ']' | ',' | '\'' | '"') || each.is_whitespace());
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if let Some(rest) = rest.strip_prefix('(') {
            self.rest = rest;
            return match word {
                "dtype" => {
                    let (name, rest) = self.rest.split_once(')')?;
                    self.rest = rest;
                    DType::named(name.trim().trim_matches(['\'', '"'])).map(Value::DType)
                }
                "slice" => {
                    let parts: [Value; 3] = self.values(")")?.try_into().ok()?;
                    Some(Value::Slice(parts.into()))
                }
                "complex" => match self.values(")")?.as_slice() {
                    [a, b] => Some(Value::Complex(number(a)?, number(b)?)),
                    _ => None,
                },
                _ => None,
            };
        }
        self.rest = rest;
        match word {
            "None" => Some(Value::None),
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            "_" => Some(Value::Input),
            "nan" => Some(Value::Float(f64::NAN)),
            "inf" => Some(Value::Float(f64::INFINITY)),
            "-inf" => Some(Value::Float(f64::NEG_INFINITY)),
            _ if word
                .bytes()
                .next()
                .is_some_and(|first| first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.')) =>
            {
                let long = word.strip_suffix('L').unwrap_or(word); // Python 2 wrote some files
                if let Ok(value) = long.parse() {
                    Some(Value::Int(value))
                } else {
                    let plain = word.bytes().all(|each| each.is_ascii_digit() || b"+-.eE".contains(&each));
                    plain.then(|| word.parse().ok().map(Value::Float)).flatten()
                }
            }
            _ => None,
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(value) => Some(*value),
        #[allow(clippy::cast_precision_loss)] // as a float it was meant
        Value::Int(value) => Some(*value as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_they_were_written() {
        for text in [
            "None",
            "True",
            "3",
            "-7",
            "0.5",
            "1e-05",
            "relu",
            "(2, 2)",
            "()",
            "(1,)",
            "'3'",
            "dtype(float32)",
            "nan",
            "slice(None, 3, None)",
            "(_, 1.0)",
            "...",
            "complex(1.0, -2.0)",
            "(('a', 1), (2,))",
            "'it\\'s'",
        ] {
            let value = parse(text);
            assert_eq!(parse(&value.to_string()), value, "{text}");
        }
        assert_eq!(parse("relu"), Value::text("relu"));
        assert_eq!(parse("[1, 2]"), Value::integers([1, 2]));
        assert_eq!(parse("(2L, 2L)"), Value::integers([2, 2]));
        assert_eq!(parse("(1"), Value::text("(1"));
        assert_eq!(Value::text("3").to_string(), "'3'");
    }

    #[test]
    fn brackets_end_somewhere() {
        let deep = "(".repeat(100_000);
        assert_eq!(parse(&deep), Value::text(&deep));
    }
}

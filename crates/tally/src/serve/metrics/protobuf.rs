// SPDX-License-Identifier: PostgreSQL
//! Metrics as Prometheus' protocol buffers: length-delimited messages
//! `io.prometheus.client.MetricFamily`. Only this format has native histograms.

use super::buckets::{classic, native, BOUNDS, SCHEMA, ZERO};
use super::family::{Family, Kind, Sample, Spread, Value};

/// Writes all families; `created` is when the counters started, seconds since 1970.
pub fn write(families: &[Family], created: Option<f64>) -> Vec<u8> {
    let mut out = Message::default();
    for family in families {
        out.delimited(&of_family(family, created));
    }
    out.0
}

fn of_family(family: &Family, created: Option<f64>) -> Message {
    let mut message = Message::default();
    message.text(1, family.name);
    message.text(2, family.help);
    message.number(
        3,
        match family.kind {
            Kind::Counter => 0,
            Kind::Gauge => 1,
            Kind::Summary => 2,
            Kind::Histogram => 4,
        },
    );
    for sample in &family.samples {
        message.message(4, &of_sample(sample, family.kind, created));
    }
    message
}

fn of_sample(sample: &Sample, kind: Kind, created: Option<f64>) -> Message {
    let mut message = Message::default();
    for (name, value) in &sample.labels {
        let mut label = Message::default();
        label.text(1, name);
        label.text(2, value);
        message.message(1, &label);
    }
    let mut value = Message::default();
    let field = match &sample.value {
        Value::Number(number) => {
            value.double(1, *number);
            if kind == Kind::Counter {
                value.time(3, created);
                3
            } else {
                2
            }
        }
        Value::Timed { count, sum } => {
            value.number(1, *count);
            value.double(2, *sum);
            value.time(4, created);
            4
        }
        Value::Spread(spread) => {
            of_spread(spread, &mut value);
            value.time(15, created);
            7
        }
    };
    message.message(field, &value);
    message
}

fn of_spread(spread: &Spread, value: &mut Message) {
    value.number(1, spread.count);
    value.double(2, spread.sum);
    // For a scraper without native histograms.
    for (bound, count) in BOUNDS.iter().zip(classic(spread)) {
        let mut bucket = Message::default();
        bucket.number(1, count);
        bucket.double(2, *bound);
        value.message(3, &bucket);
    }
    let Some(native) = native(spread) else { return };
    value.number(5, zigzag(i64::from(SCHEMA)));
    value.double(6, ZERO);
    value.number(7, native.zero);
    for (offset, length) in native.spans {
        let mut span = Message::default();
        span.number(1, zigzag(i64::from(offset)));
        span.number(2, u64::from(length));
        value.message(12, &span);
    }
    let mut deltas = Message::default();
    for delta in native.deltas {
        deltas.varint(zigzag(delta));
    }
    value.message(13, &deltas);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// An encoded message.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn key(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.key(field, 0);
        self.varint(number);
    }

    fn double(&mut self, field: u64, number: f64) {
        self.key(field, 1);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn delimited(&mut self, message: &Message) {
        self.varint(message.0.len() as u64);
        self.0.extend_from_slice(&message.0);
    }

    fn time(&mut self, field: u64, seconds: Option<f64>) {
        let Some(seconds) = seconds else { return };
        let mut time = Message::default();
        time.number(1, seconds.max(0.0) as u64);
        time.number(2, (seconds.max(0.0).fract() * 1e9) as u64);
        self.message(field, &time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_encoded_in_the_wire_format() {
        let mut family = Family::new("a", Kind::Counter, "b");
        family.number([("l", "v")], 1.0);
        let expected: Vec<u8> = [
            &[35][..],
            &[0x0a, 1, b'a', 0x12, 1, b'b', 0x18, 0],
            &[0x22, 25],
            &[0x0a, 6, 0x0a, 1, b'l', 0x12, 1, b'v'],
            &[0x1a, 15, 0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
            &[0x1a, 4, 0x08, 7, 0x10, 0],
        ]
        .concat();
        assert_eq!(write(&[family], Some(7.0)), expected);
    }

    #[test]
    fn signed_numbers_are_zigzag_encoded() {
        assert_eq!([0, -1, 1, -2, i64::MIN].map(zigzag), [0, 1, 2, 3, u64::MAX]);
        let mut message = Message::default();
        message.varint(300);
        assert_eq!(message.0, [0xac, 0x02]);
    }
}

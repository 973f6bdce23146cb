// SPDX-License-Identifier: PostgreSQL
//! Metrics as text, in Prometheus' format and OpenMetrics.

use std::fmt::{Display, Write};

use super::buckets::{classic, BOUNDS};
use super::family::{Family, Kind, MetricSample, Value};

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Prometheus' text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

/// Writes all families.
pub fn write(families: &[Family], dialect: Dialect) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = families.iter().try_for_each(|family| write_family(family, dialect, &mut out));
    if dialect == Dialect::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn write_family(family: &Family, dialect: Dialect, out: &mut String) -> std::fmt::Result {
    let name = match dialect {
        Dialect::Prometheus => family.name,
        Dialect::OpenMetrics => family.base(),
    };
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Summary => "summary",
        Kind::Histogram => "histogram",
    };
    writeln!(out, "# HELP {name} {}", family.help)?;
    writeln!(out, "# TYPE {name} {kind}")?;
    if let Some(unit) = family.unit().filter(|_| dialect == Dialect::OpenMetrics) {
        writeln!(out, "# UNIT {name} {unit}")?;
    }
    for sample in &family.samples {
        match &sample.value {
            Value::Number(value) => line(out, family.name, "", sample, None, value)?,
            Value::Timed { count, sum } => {
                line(out, family.name, "_sum", sample, None, sum)?;
                line(out, family.name, "_count", sample, None, count)?;
            }
            Value::Spread(spread) => {
                for (bound, count) in BOUNDS.iter().zip(classic(spread)) {
                    line(out, family.name, "_bucket", sample, Some(&canonical(*bound)), &count)?;
                }
                line(out, family.name, "_bucket", sample, Some("+Inf"), &spread.count)?;
                line(out, family.name, "_sum", sample, None, &spread.sum)?;
                line(out, family.name, "_count", sample, None, &spread.count)?;
            }
        }
    }
    Ok(())
}

/// Formats a bound as OpenMetrics requires, "1.0" and "2e-06". Both formats use it, so that a series keeps its
/// labels when the format changes.
fn canonical(bound: f64) -> String {
    if bound < 1e-4 {
        format!("{bound:e}").replace("e-", "e-0")
    } else {
        format!("{bound:?}")
    }
}

fn line(
    out: &mut String,
    name: &str,
    ending: &str,
    sample: &MetricSample,
    bound: Option<&str>,
    value: &dyn Display,
) -> std::fmt::Result {
    write!(out, "{name}{ending}")?;
    let own = sample.labels.iter().map(|(label, text)| (*label, text.as_str()));
    for (at, (label, text)) in own.chain(bound.map(|bound| ("le", bound))).enumerate() {
        out.push(if at == 0 { '{' } else { ',' });
        write!(out, "{label}=\"")?;
        for letter in text.chars() {
            match letter {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                other => out.push(other),
            }
        }
        out.push('"');
    }
    if !sample.labels.is_empty() || bound.is_some() {
        out.push('}');
    }
    writeln!(out, " {value}")
}

#[cfg(test)]
mod tests {
    use super::super::family::Spread;
    use super::*;

    fn families() -> Vec<Family> {
        let mut bytes = Family::new("pgtally_file_bytes_total", Kind::Counter, "Bytes moved.");
        bytes.number([("file", "odd \"name\"\\\n")], 8192.0);
        let mut waits = Family::new("pgtally_wait_seconds", Kind::Histogram, "Waits.");
        let buckets = vec![(1.5e-6, 2), (300.0, 1)];
        waits.push([], Value::Spread(Spread { count: 3, sum: 300.000003, buckets }));
        let mut reads = Family::new("pgtally_command_read_seconds", Kind::Summary, "Reads.");
        reads.timed([("command", "Query")], 7, 0.25);
        vec![bytes, waits, reads]
    }

    #[test]
    fn only_openmetrics_headings_of_counters_omit_total() {
        let prometheus = write(&families(), Dialect::Prometheus);
        assert!(prometheus.contains("# TYPE pgtally_file_bytes_total counter\n"));
        assert!(!prometheus.contains("# EOF") && !prometheus.contains("# UNIT"));
        let open = write(&families(), Dialect::OpenMetrics);
        assert!(
            open.contains("# TYPE pgtally_file_bytes counter\n# UNIT pgtally_file_bytes bytes\n")
        );
        assert!(open.ends_with("# EOF\n"));
        for text in [&prometheus, &open] {
            let odd = "pgtally_file_bytes_total{file=\"odd \\\"name\\\"\\\\\\n\"} 8192\n";
            assert!(text.contains(odd), "{text}");
            assert!(text.contains("pgtally_wait_seconds_bucket{le=\"1e-06\"} 0\n"), "{text}");
            assert!(text.contains("pgtally_wait_seconds_bucket{le=\"2e-06\"} 2\n"), "{text}");
            assert!(text.contains("pgtally_wait_seconds_bucket{le=\"1.0\"} 2\n"), "{text}");
            assert!(text.contains("pgtally_wait_seconds_bucket{le=\"+Inf\"} 3\n"), "{text}");
            assert!(text.contains("pgtally_wait_seconds_sum 300.000003\n"), "{text}");
            assert!(text.contains("pgtally_command_read_seconds_count{command=\"Query\"} 7\n"));
        }
    }
}

// SPDX-License-Identifier: PostgreSQL
//! Chooses the format of metrics from the scraper's Accept header.

use super::text::Dialect;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One of the two text formats.
    Text(Dialect),
    /// Protocol buffers.
    Protobuf,
}

impl Form {
    /// Its Content-Type.
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Text(Dialect::Prometheus) => "text/plain; version=0.0.4; charset=utf-8",
            Form::Text(Dialect::OpenMetrics) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            Form::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }

    /// The format with the highest weight, or the first of several; text by default.
    pub fn wanted(accept: &str) -> Form {
        let mut best = (Form::Text(Dialect::Prometheus), 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or("").to_ascii_lowercase();
            let parameters: Vec<(String, &str)> = parts
                .filter_map(|part| part.split_once('='))
                .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
                .collect();
            let parameter =
                |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, v)| *v);
            let form = match kind.as_str() {
                "application/vnd.google.protobuf"
                    if parameter("proto") == Some("io.prometheus.client.MetricFamily")
                        && parameter("encoding") == Some("delimited") =>
                {
                    Form::Protobuf
                }
                // Clients of 0.0.1 can read this as well.
                "application/openmetrics-text" => Form::Text(Dialect::OpenMetrics),
                "text/plain" | "text/*" | "*/*" => Form::Text(Dialect::Prometheus),
                _ => continue,
            };
            let weight = parameter("q").map_or(1.0, |q| q.parse().unwrap_or(0.0));
            if weight > best.1 {
                best = (form, weight);
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [Form; 3] =
        [Form::Text(Dialect::Prometheus), Form::Text(Dialect::OpenMetrics), Form::Protobuf];

    #[test]
    fn each_scraper_gets_its_preferred_format() {
        let protobuf = "application/vnd.google.protobuf;\
                        proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let open = "application/openmetrics-text;version=1.0.0";
        for (accept, form) in [
            ("", FORMS[0]),
            ("*/*", FORMS[0]),
            ("text/html, image/png", FORMS[0]),
            (&*format!("{open},{open};q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"), FORMS[1]),
            (&*format!("{protobuf},{open};q=0.8,text/plain;q=0.5"), FORMS[2]),
            (&*format!("{protobuf};q=0.2,text/plain;version=0.0.4"), FORMS[0]),
            ("application/vnd.google.protobuf;encoding=text;q=1,*/*;q=0.1", FORMS[0]),
            ("Text/Plain ; Q=0.3 , */* ; q=nonsense", FORMS[0]),
        ] {
            assert_eq!(Form::wanted(accept), form, "{accept}");
        }
    }
}

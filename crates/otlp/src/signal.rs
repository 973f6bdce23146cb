// SPDX-License-Identifier: PostgreSQL
//! The signals of OpenTelemetry.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Readings of all metrics.
    Metrics,
    /// Events.
    Logs,
    /// Spans.
    Traces,
}

impl Signal {
    /// The name, as in environment variables.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Metrics => "metrics",
            Signal::Logs => "logs",
            Signal::Traces => "traces",
        }
    }

    /// The path below a base URL.
    pub fn path(self) -> &'static str {
        match self {
            Signal::Metrics => "/v1/metrics",
            Signal::Logs => "/v1/logs",
            Signal::Traces => "/v1/traces",
        }
    }

    /// The number of data points, log records or spans that an answer rejects, and why.
    pub fn rejected(self, answer: &[u8]) -> Option<(u64, String)> {
        let (number, text) = match self {
            Signal::Metrics => {
                let answer = ExportMetricsServiceResponse::decode(answer).ok()?.partial_success?;
                (answer.rejected_data_points, answer.error_message)
            }
            Signal::Logs => {
                let answer = ExportLogsServiceResponse::decode(answer).ok()?.partial_success?;
                (answer.rejected_log_records, answer.error_message)
            }
            Signal::Traces => {
                let answer = ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
                (answer.rejected_spans, answer.error_message)
            }
        };
        Some((u64::try_from(number).unwrap_or(0), text))
    }
}

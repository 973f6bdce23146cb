// SPDX-License-Identifier: PostgreSQL
//! Attributes, named by OpenTelemetry's semantic conventions if there is one.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};

/// The instrumentation scope.
pub fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "pgtally".to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        ..InstrumentationScope::default()
    }
}

/// A value.
pub fn value(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn attribute(key: &str, content: Value) -> KeyValue {
    KeyValue { key: key.to_string(), value: Some(value(content)), ..KeyValue::default() }
}

/// A text attribute.
pub fn text(key: &str, text: &str) -> KeyValue {
    attribute(key, Value::StringValue(text.to_string()))
}

/// A whole number as an attribute.
pub fn number(key: &str, number: i64) -> KeyValue {
    attribute(key, Value::IntValue(number))
}

/// A number as an attribute.
pub fn real(key: &str, number: f64) -> KeyValue {
    attribute(key, Value::DoubleValue(number))
}

/// A label of a metric as an attribute. Labels without a convention keep their names.
pub fn of_label((label, value): &(&'static str, String)) -> KeyValue {
    let key = match *label {
        "database" => "db.namespace",
        "user" => "user.name",
        other => other,
    };
    text(key, value)
}

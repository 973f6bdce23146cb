// SPDX-License-Identifier: PostgreSQL
//! The Parquet types of a table's columns.

use crate::table::{Column, Shape, Unit};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::Type;
use std::sync::Arc;

fn field(column: &Column) -> Result<Type, ParquetError> {
    let time = LogicalType::Timestamp { is_adjusted_to_u_t_c: true, unit: TimeUnit::MILLIS };
    let (physical, repetition) = match column.shape {
        Shape::Long => (Physical::INT64, Repetition::REQUIRED),
        Shape::OptLong => (Physical::INT64, Repetition::OPTIONAL),
        Shape::Double => (Physical::DOUBLE, Repetition::REQUIRED),
        Shape::Bool => (Physical::BOOLEAN, Repetition::REQUIRED),
        Shape::Text => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
        Shape::OptText => (Physical::BYTE_ARRAY, Repetition::OPTIONAL),
        Shape::Longs => {
            let element = Type::primitive_type_builder("element", Physical::INT64)
                .with_repetition(Repetition::REQUIRED)
                .build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(element)])
                .build()?;
            return Type::group_type_builder(column.name)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build();
        }
    };
    let logical = match (column.unit, physical) {
        (Unit::Time, Physical::INT64) => Some(time),
        (_, Physical::BYTE_ARRAY) => Some(LogicalType::String),
        _ => None,
    };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

pub(super) fn schema(table: &str, columns: &[Column]) -> Result<Type, ParquetError> {
    let fields = columns.iter().map(|column| field(column).map(Arc::new));
    Type::group_type_builder(table).with_fields(fields.collect::<Result<_, _>>()?).build()
}

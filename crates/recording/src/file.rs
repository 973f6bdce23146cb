// SPDX-License-Identifier: PostgreSQL
//! A Parquet file with rows of one table, always written and read as a whole.

mod chunk;
mod encoding;
mod limit;
mod numbers;
mod quiet;
mod read;
mod schema;
mod series;
mod sorted_dictionary;
mod units;
mod write;

pub(crate) use encoding::Effort;
pub use quiet::panic_is_expected;
pub(crate) use read::{read, read_columns};
use units::{failed, scale, MILLISECOND_US};
pub(crate) use write::write;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::recorded_statement::RecordedStatementRow;
    use crate::rows::FrameRow;
    use crate::table::{columns, table, Cell, Cells, Column, Columns, Table, Unit};
    use parquet::data_type::Int64Type;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use std::fs::File;

    table! {
        /// An interval as the first version wrote it.
        OldRow in "frames" by |a, b| a.frame.cmp(&b.frame);
        /// The old name of `overflow_lost_merges`.
        overflow_lost_folds: u64, Count; // old name
    }

    /// A file with this many intervals, all of number 7.
    fn of_equal_intervals(path: &Path, rows: usize) {
        let schema = "message frames { required int64 frame; }";
        let schema =
            std::sync::Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
        let file = File::create(path).unwrap();
        let zstd = parquet::basic::Compression::ZSTD(Default::default());
        let properties = WriterProperties::builder()
            .set_compression(zstd)
            .set_data_page_row_count_limit(rows)
            .build();
        let mut file = SerializedFileWriter::new(file, schema, properties.into()).unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let numbers = vec![7; 100_000];
        for _ in 0..rows / numbers.len() {
            column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap();
        }
        column.close().unwrap();
        group.close().unwrap();
        file.close().unwrap();
    }

    #[test]
    fn a_few_bytes_that_stand_for_many_values_do_not_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("many.parquet");
        let wanted = columns::<FrameRow>(&["frame"]);
        let read = |wanted: &[Column]| {
            let mut rows = 0;
            let read = read_columns(File::open(&path).unwrap(), &path, wanted, |columns| {
                rows += columns.rows
            });
            (read.map_err(|error| error.to_string()), rows)
        };
        of_equal_intervals(&path, 1_000_000);
        assert_eq!(read(&wanted), (Ok(()), 1_000_000));
        of_equal_intervals(&path, 10_000_000);
        assert!(std::fs::metadata(&path).unwrap().len() < 20_000);
        let (error, rows) = read(&wanted);
        let error = error.unwrap_err();
        assert!(error.contains("many.parquet") && error.contains("MB of memory"), "{error}");
        assert_eq!(rows, 0);
        // Values of columns that the file does not have do not count either.
        let (error, rows) = read(&columns::<FrameRow>(&["time", "server"]));
        assert!(error.unwrap_err().contains("MB of memory") && rows == 0);
    }

    #[test]
    fn lists_are_those_of_their_rows_in_each_batch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lists.parquet");
        let row = |frame: u64| RecordedStatementRow {
            frame,
            time_us: frame as i64 * 1000,
            buckets: (0..frame * frame % 5).collect(),
            counts: (0..frame * frame % 5).map(|n| frame + n).collect(),
            ..RecordedStatementRow::default()
        };
        // More than two batches.
        let rows: Vec<RecordedStatementRow> = (0..70_000).map(row).collect();
        write(&path, &rows, Effort::Fast, files::Access::Owner).unwrap();
        let found = read::<RecordedStatementRow>(File::open(&path).unwrap(), &path).unwrap();
        assert!(found == rows);
    }

    #[test]
    fn a_column_is_read_by_its_old_name_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.parquet");
        let old = OldRow { frame: 3, overflow_lost_folds: 7, ..OldRow::default() }; // old name
        write(&path, std::slice::from_ref(&old), Effort::Fast, files::Access::Owner).unwrap();
        let rows = read::<FrameRow>(File::open(&path).unwrap(), &path).unwrap();
        assert_eq!((rows[0].frame, rows[0].overflow_lost_merges), (3, 7));
        let text = serde_json::to_string(&old).unwrap();
        let row: FrameRow = serde_json::from_str(&text).unwrap();
        assert_eq!((row.frame, row.overflow_lost_merges), (3, 7));
    }
}

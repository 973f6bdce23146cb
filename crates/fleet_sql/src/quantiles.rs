// SPDX-License-Identifier: PostgreSQL
//! Quantiles of histograms that are added up over hosts and time.

use crate::Dialect;

/// The arguments of `{{quantiles SETS | AGGREGATES | QUANTILES | FROM}}`: see [`quantiles`].
struct Quantiles<'a> {
    /// The columns of each set.
    sets: Vec<Vec<&'a str>>,
    /// Function, column, name.
    aggregates: Vec<[&'a str; 3]>,
    /// Share of the counts, name.
    quantiles: Vec<[&'a str; 2]>,
    from: &'a str,
}

/// A query with a row for each group whose histograms have counts: its columns, `counted`, which is the sum of the counts, the
/// aggregates, `shortest_ns` and `longest_ns`, and the quantiles in nanoseconds, by `format/FORMAT.md`, section 7. The arguments:
///
/// - sets of columns, separated by semicolons; each set makes groups of all rows. The first one has the columns of all others;
///   columns that a row's set does not have are null;
/// - aggregates, separated by commas: a function whose values can be aggregated by it again, a column, and a name;
/// - quantiles, separated by commas: the part of the counts that is up to it, and a name;
/// - a relation whose rows have a histogram, `buckets` and `counts` (docs/reference-recording.md), the clock's `rate` in
///   100,000 ticks a second, and the extremes of the values, `shortest` and `longest`, in nanoseconds or null.
pub(crate) fn quantiles(dialect: Dialect, arguments: &[&str]) -> String {
    let [sets, aggregates, quantiles, from] = arguments else {
        unreachable!("quantiles of {arguments:?}")
    };
    let asked = Quantiles {
        sets: sets.split(';').map(listed).collect(),
        aggregates: listed(aggregates).into_iter().map(words).chain(EXTREMES).collect(),
        quantiles: listed(quantiles).into_iter().map(words).collect(),
        from,
    };
    match dialect {
        Dialect::ClickHouse => asked.by_arrays(),
        _ => asked.by_windows(dialect),
    }
}

/// Aggregates of every query: quantiles are within the extremes.
const EXTREMES: [[&str; 3]; 2] =
    [["min", "shortest", "shortest_ns"], ["max", "longest", "longest_ns"]];

/// A bucket's middle within the extremes, as far as they are known; if they are in the wrong order, the longest.
fn within_extremes(middle: &str) -> String {
    let or_itself = |extreme: &str| format!("coalesce({extreme} / 1e0, {middle})");
    let [shortest, longest] = EXTREMES.map(|[.., name]| or_itself(name));
    format!("least(greatest({middle}, {shortest}), {longest})")
}

fn listed(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
}

fn words<const N: usize>(text: &str) -> [&str; N] {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.try_into().unwrap_or_else(|_| unreachable!("not {N} words: {text}"))
}

/// Puts a comma before each.
fn after_commas(all: impl IntoIterator<Item = String>) -> String {
    all.into_iter().map(|one| format!(", {one}")).collect()
}

/// The lowest value of a histogram's bucket, in ticks: docs/reference-recording.md.
fn low(bucket: &str) -> String {
    format!(
        "CASE WHEN {bucket} < 8 THEN 1e0 * ({bucket}) \
         ELSE (8 + ({bucket}) % 8) * power(2e0, floor(({bucket}) / 8) - 1) END"
    )
}

/// The middle of a histogram's bucket, which is a whole tick, in nanoseconds.
fn middle() -> String {
    format!("floor(({} + {}) / 2) * 1e4 / rate", low("bucket"), low("bucket + 1"))
}

impl Quantiles<'_> {
    fn keys(&self) -> String {
        self.sets[0].join(", ")
    }

    /// The SQL of each aggregate, each after a comma.
    fn each(&self, one: impl Fn(&[&str; 3]) -> String) -> String {
        after_commas(self.aggregates.iter().map(one))
    }

    /// The expression after GROUP BY, if each set has one more column.
    fn grouping(&self, further: Option<&str>) -> String {
        let set = |columns: &Vec<&str>| {
            columns.iter().copied().chain(further).collect::<Vec<_>>().join(", ")
        };
        match &self.sets[..] {
            [one] => set(one),
            many => {
                let sets: Vec<String> =
                    many.iter().map(|columns| format!("({})", set(columns))).collect();
                format!("GROUPING SETS ({})", sets.join(", "))
            }
        }
    }

    /// Reads the relation once and keeps histograms as arrays, because ClickHouse would evaluate the relation
    /// again for each use.
    fn by_arrays(&self) -> String {
        let (keys, from) = (self.keys(), self.from);
        let parts: Vec<&str> = self.quantiles.iter().map(|[part, _]| *part).collect();
        let named = self.quantiles.iter().enumerate();
        format!(
            "SELECT {keys}, counted{kept}{found} FROM (\
             SELECT {keys}, sum(arraySum(weights)) AS counted{again}, \
             quantilesExactWeightedArray({parts})(middles, weights) AS found FROM (\
             SELECT {keys}{renamed}, arrayMap(bucket -> {middle}, mapKeys(added)) AS middles, \
             arrayMap(n -> toUInt64(n), mapValues(added)) AS weights FROM (\
             SELECT {keys}, rate{first}, sumMap(mapFromArrays(buckets, counts)) AS added FROM {from} GROUP BY {keys}, rate\
             ) of_rates) of_middles GROUP BY {grouping}) of_groups WHERE counted > 0",
            kept = self.each(|[.., name]| (*name).into()),
            found = after_commas(named.map(|(at, [_, name])| {
                format!("{} AS {name}", within_extremes(&format!("found[{}]", at + 1)))
            })),
            again = self.each(|[function, _, name]| format!("{function}({name}_there) AS {name}")),
            parts = parts.join(", "),
            renamed = self.each(|[.., name]| format!("{name}_there")),
            middle = middle(),
            first = self.each(|[function, column, name]| format!("{function}({column}) AS {name}_there")),
            grouping = self.grouping(None),
        )
    }

    /// One row for each bucket, and window functions over these rows.
    fn by_windows(&self, dialect: Dialect) -> String {
        let (keys, from) = (self.keys(), self.from);
        let exploded = match dialect {
            Dialect::Spark => format!(
                "SELECT {keys}, rate, cell.buckets AS bucket, cell.counts AS n_there FROM {from} \
                 LATERAL VIEW explode(arrays_zip(buckets, counts)) cells AS cell"
            ),
            _ => format!(
                "SELECT {keys}, rate, unnest(buckets) AS bucket, unnest(counts) AS n_there FROM {from}"
            ),
        };
        let of_keys =
            |one: &dyn Fn(&&str) -> String| self.sets[0].iter().map(one).collect::<Vec<_>>();
        let joined = of_keys(&|key| format!("{key} IS NOT DISTINCT FROM of_{key}"));
        let renamed = of_keys(&|key| format!("{key} AS of_{key}"));
        let found = self.quantiles.iter().map(|[part, name]| {
            format!("min(CASE WHEN upto >= {part} * whole THEN middle_ns END) AS {name}_middle")
        });
        format!(
            "SELECT {keys}, counted{kept}{names} FROM (\
             SELECT {keys}{aggregates} FROM {from} GROUP BY {grouping}) of_groups JOIN (\
             SELECT {renamed}, max(whole) AS counted{found} FROM (\
             SELECT {keys}, middle_ns, sum(n) OVER (PARTITION BY {keys} ORDER BY middle_ns \
             ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto, \
             sum(n) OVER (PARTITION BY {keys}) AS whole FROM (\
             SELECT {keys}, middle_ns, sum(n_there) AS n FROM (\
             SELECT {keys}, {middle} AS middle_ns, n_there FROM (\
             SELECT {keys}, rate, bucket, sum(n_there) AS n_there FROM ({exploded}) exploded GROUP BY {keys}, rate, bucket\
             ) of_rates) of_middles GROUP BY {with_middle}) added) ranked GROUP BY {keys}) found ON {joined}",
            kept = self.each(|[.., name]| (*name).into()),
            names = after_commas(self.quantiles.iter().map(|[_, name]| {
                format!("{} AS {name}", within_extremes(&format!("{name}_middle")))
            })),
            aggregates = self.each(|[function, column, name]| format!("{function}({column}) AS {name}")),
            grouping = self.grouping(None),
            renamed = renamed.join(", "),
            found = after_commas(found),
            middle = middle(),
            with_middle = self.grouping(Some("middle_ns")),
            joined = joined.join(" AND "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_set_is_grouped_by_and_several_are_grouping_sets() {
        let all = |sets| {
            Dialect::ALL.map(|dialect| quantiles(dialect, &[sets, "max x y", "0.5e0 p50", "f"]))
        };
        for sql in all("a, b") {
            assert!(sql.starts_with("SELECT a, b, counted, y, ") && sql.contains("p50"), "{sql}");
            assert!(!sql.contains("GROUPING SETS"), "{sql}");
        }
        for sql in all("a, b; a") {
            assert!(sql.contains("GROUPING SETS ((a, b), (a))"), "{sql}");
        }
    }

    #[test]
    fn a_quantile_is_the_first_middle_up_to_which_its_part_of_all_counts_lies() {
        let [duckdb, clickhouse, spark] = Dialect::ALL
            .map(|dialect| quantiles(dialect, &["a", "max x y", "0.5e0 p50, 0.99e0 p99", "f"]));
        for sql in [&duckdb, &spark] {
            for part in [
                "min(CASE WHEN upto >= 0.5e0 * whole THEN middle_ns END) AS p50_middle",
                "min(CASE WHEN upto >= 0.99e0 * whole THEN middle_ns END) AS p99_middle",
                "least(greatest(p50_middle, coalesce(shortest_ns / 1e0, p50_middle)), coalesce(longest_ns / 1e0, p50_middle)) AS p50",
                "sum(n) OVER (PARTITION BY a ORDER BY middle_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto",
                "GROUP BY a, rate, bucket",
                "GROUP BY a, middle_ns) added",
            ] {
                assert!(sql.contains(part), "{part}: {sql}");
            }
        }
        for part in [
            "(0.5e0, 0.99e0)(middles, weights)",
            "coalesce(longest_ns / 1e0, found[1])) AS p50, least(greatest(found[2], ",
            "WHERE counted > 0",
            "GROUP BY a, rate)",
        ] {
            assert!(clickhouse.contains(part), "{part}: {clickhouse}");
        }
    }

    #[test]
    fn the_buckets_are_those_of_the_segment() {
        assert_eq!(
            super::low("b"),
            "CASE WHEN b < 8 THEN 1e0 * (b) ELSE (8 + (b) % 8) * power(2e0, floor((b) / 8) - 1) END"
        );
        let low = |b: u64| if b < 8 { b } else { (8 + b % 8) << (b / 8 - 1) };
        for bucket in 0..200 {
            assert_eq!(low(bucket), segment::layout::bucket_low(bucket as usize), "{bucket}");
        }
        let (this, next) = (super::low("bucket"), super::low("bucket + 1"));
        assert_eq!(middle(), format!("floor(({this} + {next}) / 2) * 1e4 / rate"));
        for bucket in 0..200 {
            let middle = ((low(bucket) + low(bucket + 1)) as f64 / 2.0).floor() as u64;
            assert_eq!(middle, segment::layout::bucket_middle(bucket as usize), "{bucket}");
        }
    }
}

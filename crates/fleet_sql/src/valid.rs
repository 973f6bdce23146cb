// SPDX-License-Identifier: PostgreSQL
//! Decides from the names alone which files of a table count (ADR 66).

use recording::GRADES;

/// The hour in the path of a file.
pub(crate) const HOUR: &str = "/([0-9][0-9])[^/]*$";

/// A number for the grade in a file's name: files with a higher grade replace those with a lower one; a file with
/// 0 never counts.
pub(crate) fn grade(path: &str) -> String {
    let known: String =
        GRADES.iter().zip(1..).map(|(name, n)| format!(" WHEN '{name}' THEN {n}")).collect();
    format!("CASE regexp_extract({path}, '-([a-z0-9]+)[.]parquet$', 1){known} ELSE 0 END")
}

/// What files that replace each other have in common: directory, hour, and the number before the grade, which
/// distinguishes further recordings of the same host.
pub(crate) fn place(path: &str) -> [String; 3] {
    ["^(.*)/[^/]*$", HOUR, "/[0-9]+-([0-9]+)-[a-z0-9]+[.]parquet$"]
        .map(|pattern| format!("regexp_extract({path}, '{pattern}', 1)"))
}

/// Selects the paths of the files that count, from a relation with all paths.
pub(crate) fn valid(paths: &str) -> String {
    let [folder, hour, generation] = place("path");
    format!(
        "SELECT path FROM (SELECT path, grade, max(grade) OVER (PARTITION BY folder, hour, generation) AS best FROM \
         (SELECT path, {grade} AS grade, {folder} AS folder, {hour} AS hour, {generation} AS generation \
         FROM ({paths}) listed) graded) ranked \
         WHERE grade = best AND grade > 0",
        grade = grade("path")
    )
}

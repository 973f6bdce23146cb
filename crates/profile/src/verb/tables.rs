// SPDX-License-Identifier: PostgreSQL
//! Tables of a profile.

use crate::sums::{by_function, by_image, cpu_half_width};
use crate::{Profile, Stack};
use segment::WaitClass;
use view::table::{Cell, Column, Table, Tone, Unit};
use view::units::{duration, percent};

/// Accounts that are not idle, with the exact time and the samples of each.
pub fn accounts(profile: &Profile) -> Table {
    let columns = vec![
        Column::new("phase", "PHASE", Unit::Text),
        Column::new("activity", "ACTIVITY", Unit::Text),
        Column::new("seconds", "LEDGER", Unit::Seconds),
        Column::new("share", "%", Unit::Share),
        Column::new("sampled", "SAMPLED", Unit::Seconds),
        Column::new("error", "±", Unit::Seconds),
        Column::new("on_cpu", "ON CPU", Unit::Count),
    ];
    let mut table = Table::from_rows(columns, Vec::new());
    let busy: f64 =
        profile.ledger.iter().filter(|account| !account.idle).map(|account| account.seconds).sum();
    let shown = profile.ledger.iter().filter(|account| !account.idle || account.cpu_samples > 0);
    for row in shown
        .filter(|account| account.seconds > 0.0 || account.samples > 0 || account.cpu_samples > 0)
    {
        let share = if row.idle { Cell::Empty } else { Cell::from(row.seconds / busy) };
        let tone = if row.idle {
            Tone::Faint
        } else {
            Tone::from_class(WaitClass::of_name(&row.account.activity))
        };
        table.push(
            tone,
            vec![
                row.account.phase.as_str().into(),
                row.account.activity.as_str().into(),
                row.seconds.into(),
                share,
                row.sampled_seconds.into(),
                format!("±{}", duration(row.half_width_seconds)).into(),
                row.cpu_samples.into(),
            ],
        );
    }
    table
}

/// Samples by image, most first.
pub fn images(profile: &Profile, wanted: impl Fn(&Stack) -> bool) -> Table {
    let columns = vec![
        Column::new("samples", "SAMPLES", Unit::Count),
        Column::new("share", "%", Unit::Share),
        Column::new("error", "±", Unit::Share),
        Column::new("image", "IMAGE", Unit::Text).elastic(),
    ];
    let mut table = Table::from_rows(columns, Vec::new());
    let sums = by_image(profile, wanted);
    let all: u64 = sums.iter().map(|sum| sum.samples).sum();
    for sum in sums {
        let [share, error] = shares(sum.samples, all);
        table.push(Tone::Plain, vec![sum.samples.into(), share, error, sum.key.into()]);
    }
    table
}

/// Samples by the innermost function, most first, up to `rows`; percentages are of all `wanted` samples.
pub fn functions(
    profile: &Profile,
    rows: usize,
    with_image: bool,
    wanted: impl Fn(&Stack) -> bool,
) -> Table {
    let mut columns = vec![
        Column::new("samples", "SAMPLES", Unit::Count),
        Column::new("share", "%", Unit::Share),
        Column::new("error", "±", Unit::Share),
    ];
    if with_image {
        columns.push(Column::new("image", "IMAGE", Unit::Text));
    }
    columns.push(Column::new("symbol", "SYMBOL", Unit::Text).elastic());
    let mut table = Table::from_rows(columns, Vec::new());
    let sums = by_function(profile, wanted);
    let all: u64 = sums.iter().map(|sum| sum.samples).sum();
    for sum in sums.into_iter().take(rows) {
        let [share, error] = shares(sum.samples, all);
        let mut cells = vec![sum.samples.into(), share, error];
        if with_image {
            cells.push(
                Profile::short(sum.key.map_or("(unknown)", |function| &function.image)).into(),
            );
        }
        cells.push(sum.key.map_or("(unknown)", |function| &function.name).into());
        table.push(Tone::Plain, cells);
    }
    table
}

fn shares(samples: u64, all: u64) -> [Cell; 2] {
    let of = |count: f64| count / all.max(1) as f64;
    let error = of(cpu_half_width(samples, all));
    [Cell::from(of(samples as f64)), format!("±{}", percent(error)).into()]
}

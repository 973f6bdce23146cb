// SPDX-License-Identifier: PostgreSQL
//! Figures of the machine from a recording, in the form that the panes use.

use recording::{KernelRow, SettingRow};
use segment::kernel::KernelView;

/// The kernel's view in some detail intervals, in which sessions were busy for `busy_seconds`.
pub fn witness<'r>(
    rows: impl Iterator<Item = &'r KernelRow>,
    busy_ns: u64,
    of_seconds: Option<f64>,
) -> KernelView {
    let seconds = |ns: u64| ns as f64 * 1e-9;
    let mut sum: Option<KernelView> = None;
    for row in rows {
        let sum = sum.get_or_insert_default();
        sum.sessions = usize::try_from(row.sessions).unwrap_or(0);
        sum.cpu_account_seconds += seconds(row.cpu_account_ns);
        sum.on_cpu_seconds += seconds(row.on_cpu_ns);
        sum.run_queue_seconds += seconds(row.run_queue_ns);
        sum.unexplained_seconds += seconds(row.unexplained_ns);
    }
    let Some(sum) = sum else {
        return KernelView::unavailable("the kernel's figures were not recorded in this interval");
    };
    let of_kernel = sum.on_cpu_seconds + sum.run_queue_seconds;
    KernelView {
        available: true,
        of_seconds,
        runnable_inside_waits_seconds: (of_kernel - sum.cpu_account_seconds).max(0.0),
        unexplained_share: sum.unexplained_seconds / seconds(busy_ns.max(1)),
        sampling_reason: Some("recorded as sums".to_string()),
        ..sum
    }
}

/// Where the server's files are, in words, from the recorded facts.
pub fn places(settings: &[SettingRow]) -> Vec<String> {
    let is_place = |name: &str| {
        matches!(name, "data directory" | "write-ahead log" | "server log")
            || name.starts_with("tablespace ")
    };
    let of_machine = settings.iter().filter(|row| &*row.group == "machine" && is_place(&row.name));
    of_machine.map(|row| format!("{}: {}", row.name, row.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cpu: u64, on_cpu: u64) -> KernelRow {
        KernelRow {
            interval_ns: 10_000_000_000,
            sessions: 4,
            cpu_account_ns: cpu * 1_000_000,
            on_cpu_ns: on_cpu * 1_000_000,
            unexplained_ns: cpu.saturating_sub(on_cpu) * 1_000_000,
            ..KernelRow::default()
        }
    }

    #[test]
    fn the_kernels_view_is_the_sum_of_the_details() {
        let rows = [row(500, 900), row(300, 200)];
        let witness = super::witness(rows.iter(), 2_000_000_000, Some(20.0));
        assert!(witness.available && witness.sessions == 4);
        assert!((witness.cpu_account_seconds - 0.8).abs() < 1e-9);
        assert!((witness.runnable_inside_waits_seconds - 0.3).abs() < 1e-9);
        assert!((witness.unexplained_share - 0.05).abs() < 1e-9);
        let nothing = super::witness([].iter(), 0, None);
        assert!(!nothing.available && nothing.reason.is_some());
    }

    #[test]
    fn paths_are_listed_and_other_settings_are_not() {
        let row = |group: &str, name: &str| SettingRow {
            group: group.into(),
            name: name.into(),
            value: "/x on ext4".into(),
            ..SettingRow::default()
        };
        let all = [
            row("machine", "data directory"),
            row("machine", "kernel"),
            row("machine", "tablespace 16385"),
            row("server", "data directory"),
        ];
        assert_eq!(places(&all), ["data directory: /x on ext4", "tablespace 16385: /x on ext4"]);
    }
}

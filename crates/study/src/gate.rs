// SPDX-License-Identifier: PostgreSQL
//! Checks whether the machine was quiet enough during a cell.

use super::cell::{Cell, Machine};
use super::file::Gate;

/// How the machine exceeded the gate; `None` if it did not. `cells` give the usual CPU frequency.
pub fn disturbed(gate: &Gate, machine: &Machine, cells: &[Cell]) -> Option<String> {
    if let Some(steal) = machine.disturbance.steal_percent.filter(|steal| *steal > gate.steal) {
        return Some(format!("{steal:.1} % of CPU time was stolen"));
    }
    if let Some(foreign) = machine.foreign_percent.filter(|foreign| *foreign > gate.foreign) {
        return Some(format!("other processes used {foreign:.0} % of a CPU"));
    }
    let mut known: Vec<f64> =
        cells.iter().filter_map(|cell| cell.machine.disturbance.mhz).collect();
    known.sort_by(f64::total_cmp);
    let (mhz, median) = (machine.disturbance.mhz?, *known.get(known.len() / 2)?);
    (mhz < median * (1.0 - gate.frequency / 100.0))
        .then(|| format!("CPU frequency {mhz:.0} MHz, otherwise {median:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::host::Disturbance;

    #[test]
    fn exceeding_the_gate_is_reported() {
        let gate = Gate::default();
        let machine = |steal, foreign| Machine {
            disturbance: Disturbance { steal_percent: Some(steal), ..Disturbance::default() },
            foreign_percent: Some(foreign),
            tries: 1,
            disturbed: None,
        };
        assert_eq!(disturbed(&gate, &machine(1.0, 2.0), &[]), None);
        assert!(disturbed(&gate, &machine(50.0, 2.0), &[]).unwrap().contains("stolen"));
        assert!(disturbed(&gate, &machine(1.0, 90.0), &[]).unwrap().contains("90 %"));
    }
}

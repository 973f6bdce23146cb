// SPDX-License-Identifier: PostgreSQL
//! Checks whether the machine was quiet enough during a cell.

use super::cell::{Cell, Machine};
use super::file::Gate;

/// How the machine exceeded the gate; `None` if it did not. `cells` provide the usual CPU frequency.
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
        .then(|| format!("CPU frequency was {mhz:.0} MHz, {median:.0} MHz in other cells"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::host::Disturbance;

    fn machine(steal: f64, foreign: f64, mhz: f64) -> Machine {
        let (steal_percent, mhz) = (Some(steal), Some(mhz));
        let disturbance = Disturbance { steal_percent, mhz, ..Disturbance::default() };
        Machine { disturbance, foreign_percent: Some(foreign), tries: 1, disturbed: None }
    }

    #[test]
    fn exceeding_the_gate_is_reported() {
        let gate = Gate { steal: 5.0, foreign: 20.0, frequency: 10.0, ..Gate::default() };
        // The median is 2000 MHz.
        let cells = [1000.0, 3000.0, 2000.0].map(|mhz| Cell {
            arm: String::new(),
            point: crate::study::plan::LoadPoint { clients: 1, rate: None },
            block: 0,
            began: 0.0,
            seconds: 1.0,
            values: Default::default(),
            series: None,
            machine: machine(0.0, 0.0, mhz),
            proof: Default::default(),
            marks: Vec::new(),
            listings: Vec::new(),
        });
        for (steal, foreign, mhz, found) in [
            (5.0, 20.0, 1800.0, None),
            (5.1, 20.0, 1800.0, Some("5.1 % of CPU time was stolen")),
            (5.0, 21.0, 1800.0, Some("other processes used 21 % of a CPU")),
            (5.0, 20.0, 1799.0, Some("CPU frequency was 1799 MHz, 2000 MHz in other cells")),
        ] {
            let why = disturbed(&gate, &machine(steal, foreign, mhz), &cells);
            assert_eq!(why.as_deref(), found, "{steal} {foreign} {mhz}");
        }
        assert_eq!(disturbed(&gate, &machine(0.0, 0.0, 1.0), &[]), None, "nothing to compare with");
    }
}

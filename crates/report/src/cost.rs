// SPDX-License-Identifier: PostgreSQL
//! The overhead of measuring: the result of `tally cost`, if it was given. Otherwise it is unknown, because the
//! clock readings alone are only a small part of it.

use view::document::Cost;

use super::material::{Material, Setting};
use super::measured_cost::MeasuredCost;

/// Group and name of the setting that names the processor.
const PROCESSOR: (&str, &str) = ("machine", "processor");

fn setting<'s>(settings: &'s [Setting], (group, name): (&str, &str)) -> Option<&'s str> {
    let found = settings.iter().rfind(|setting| setting.group == group && setting.name == name)?;
    Some(found.value.as_str())
}

/// The overhead in CPU time; `None` if it was not measured.
pub fn cost(material: &Material) -> Option<Cost> {
    material.cost.as_ref().and_then(MeasuredCost::cost)
}

/// The overhead as a sentence.
pub fn words(material: &Material) -> String {
    let processor = setting(&material.settings, PROCESSOR);
    let measured =
        material.cost.as_ref().and_then(|cost| cost.words(processor, material.whole.level));
    measured.unwrap_or_else(|| {
        format!(
            "not measured; run `tally cost {}` with your own load, and pass its result to --cost to show it here",
            material.whole.server.host
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured_cost::tests::{result, RESULT};
    use crate::sample;

    #[test]
    fn only_a_measured_cost_is_shown() {
        let mut material = sample::material();
        assert_eq!(cost(&material), None);
        assert!(
            words(&material).starts_with("not measured; run `tally cost /"),
            "{}",
            words(&material)
        );
        material.whole.level = segment::Level::Waits;
        material.cost = Some(result(RESULT).unwrap());
        assert_eq!(cost(&material), Some(Cost { percent: 0.41, half_width: 0.12 }));
        let text = words(&material);
        assert!(text.contains("waits takes +0.41 % ± 0.12 of") && !text.contains("but"), "{text}");
        let processor = Setting {
            group: "machine".into(),
            name: "processor".into(),
            value: "X10".into(),
            changed: None,
        };
        material.settings.push(processor);
        assert!(
            words(&material).contains("on a X9, and this machine has a X10"),
            "{}",
            words(&material)
        );
    }
}

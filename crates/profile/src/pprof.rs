// SPDX-License-Identifier: PostgreSQL
//! Writes a profile in pprof's format (github.com/google/pprof, proto/profile.proto), compressed, for go tool pprof,
//! Speedscope and Perfetto.
//!
//! Each sample has two values: time on a CPU, and time of sessions in any activity. Session samples have no stack, and
//! their only frame is named after the account. Phase, activity and statement are labels.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::Compression;
use prost::Message;

use crate::profile::{Account, Profile};
use crate::string_table::StringTable;

#[derive(Clone, PartialEq, Message)]
struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<PprofLine>,
}

#[derive(Clone, PartialEq, Message)]
struct PprofLine {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct PprofFunction {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

fn number(texts: &mut StringTable, text: &str) -> i64 {
    texts.number(text) as i64
}

/// The profile as a file.
pub fn encode(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&file(profile).encode_to_vec())?;
    packed.finish()
}

fn file(profile: &Profile) -> PprofProfile {
    let mut texts = StringTable::default();
    // The first text must be empty.
    number(&mut texts, "");
    let nanoseconds = number(&mut texts, "nanoseconds");
    let mut value_type = |name| ValueType { kind: number(&mut texts, name), unit: nanoseconds };
    let (cpu, sessions) = (value_type("cpu"), value_type("sessions"));
    let mut functions = Vec::new();
    let mut function = |texts: &mut StringTable, name: &str, file: &str| {
        let id = functions.len() as u64 + 1;
        let name = number(texts, name);
        functions.push(PprofFunction {
            id,
            name,
            system_name: name,
            filename: number(texts, file),
        });
        id
    };
    for symbol in &profile.symbols {
        function(&mut texts, &symbol.name, &symbol.image);
    }
    let period = 1e9 / profile.hertz;
    let mut samples = Vec::new();
    let label = |texts: &mut StringTable, key: &str, text: &str| Label {
        key: number(texts, key),
        text: number(texts, text),
    };
    let labels = |texts: &mut StringTable, account: &Account, statement: Option<usize>| {
        let mut all = Vec::new();
        if !account.phase.is_empty() {
            all.push(label(texts, "phase", &account.phase));
            all.push(label(texts, "activity", &account.activity));
        }
        if let Some(statement) = statement.map(|index| &profile.statements[index]) {
            all.push(label(texts, "query_id", &statement.query_id.to_string()));
        }
        all
    };
    for stack in &profile.stacks {
        let mut label_all = labels(&mut texts, &stack.account, stack.statement);
        label_all.push(label(&mut texts, "process", &profile.processes[stack.process].name));
        samples.push(PprofSample {
            location_id: stack.frames.iter().map(|frame| *frame as u64 + 1).collect(),
            value: vec![(stack.samples as f64 * period) as i64, 0],
            label: label_all,
        });
    }
    let each = 1e9 * profile.seconds / profile.quality.instants.max(1) as f64;
    let mut accounts: HashMap<&Account, [u64; 2]> = HashMap::new();
    for session in &profile.sessions {
        let ids = *accounts.entry(&session.account).or_insert_with(|| {
            let Account { phase, activity } = &session.account;
            [function(&mut texts, activity, "wait"), function(&mut texts, phase, "phase")]
        });
        samples.push(PprofSample {
            location_id: ids.to_vec(),
            value: vec![0, (session.samples as f64 * each) as i64],
            label: labels(&mut texts, &session.account, session.statement),
        });
    }
    let location = |function: &PprofFunction| Location {
        id: function.id,
        line: vec![PprofLine { function_id: function.id }],
    };
    PprofProfile {
        location: functions.iter().map(location).collect(),
        sample_type: vec![cpu.clone(), sessions],
        sample: samples,
        function: functions,
        string_table: texts.into_texts(),
        time_nanos: ((profile.time - profile.seconds) * 1e9) as i64,
        duration_nanos: (profile.seconds * 1e9) as i64,
        period_type: Some(cpu),
        period: period as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::profile;

    #[test]
    fn every_number_refers_to_something() {
        let file = file(&profile());
        let bytes = file.encode_to_vec();
        let file = PprofProfile::decode(&*bytes).unwrap();
        assert_eq!(file.string_table[0], "");
        assert_eq!(file.location.len(), file.function.len());
        for sample in &file.sample {
            assert_eq!(sample.value.len(), file.sample_type.len());
            assert!(sample
                .location_id
                .iter()
                .all(|id| (1..=file.location.len() as u64).contains(id)));
        }
        let name = |id: u64| {
            let function = &file.function[id as usize - 1];
            file.string_table[function.name as usize].as_str()
        };
        let first = &file.sample[0];
        assert_eq!(
            first.location_id.iter().map(|id| name(*id)).collect::<Vec<_>>(),
            ["leaf", "main"]
        );
        let cpu: i64 = file.sample.iter().map(|sample| sample.value[0]).sum();
        assert_eq!(cpu, 40 * 10_000_000);
    }

    #[test]
    fn samples_have_their_time_on_a_cpu_or_in_an_account_and_their_labels() {
        let mut profile = profile();
        profile.stacks[1].account = Account::default();
        let file = file(&profile);
        let text = |at: i64| file.string_table[at as usize].as_str();
        let names = |sample: &PprofSample| -> Vec<&str> {
            sample.location_id.iter().map(|id| text(file.function[*id as usize - 1].name)).collect()
        };
        let labels = |sample: &PprofSample| -> Vec<String> {
            sample
                .label
                .iter()
                .map(|label| format!("{}={}", text(label.key), text(label.text)))
                .collect()
        };
        // 10 samples of 10 ms; 59 of 100 instants in a second.
        let (first, last) = (&file.sample[0], &file.sample[3]);
        assert_eq!((&first.value[..], names(first)), (&[100_000_000, 0][..], vec!["leaf", "main"]));
        let all = ["phase=execute", "activity=cpu", "query_id=-7", "process=client backend"];
        assert_eq!(labels(first), all);
        assert_eq!(labels(&file.sample[1]), all[2..], "its account is not known");
        assert_eq!(last.value, [0, 590_000_000]);
        assert_eq!(names(last), ["IO:DataFileRead", "execute"]);
        assert_eq!(labels(last), ["phase=execute", "activity=IO:DataFileRead", "query_id=-7"]);
        let types = file.sample_type.iter().map(|kind| (text(kind.kind), text(kind.unit)));
        let expected = [("cpu", "nanoseconds"), ("sessions", "nanoseconds")];
        assert_eq!(types.collect::<Vec<_>>(), expected);
        let times = (file.time_nanos, file.duration_nanos, file.period);
        assert_eq!(times, (1_782_907_199_000_000_000, 1_000_000_000, 10_000_000));
    }
}

// SPDX-License-Identifier: PostgreSQL
//! Writes a profile in the Firefox Profiler's processed format, compressed, for profiler.firefox.com, which reads it in
//! the browser. Each process of the server is a thread, with its samples, and its waits as markers.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::Compression;
use serde_json::{json, Value};

use crate::profile::Profile;
use crate::string_table::StringTable;
use crate::timeline::{Timeline, Track};

/// Version of the format: github.com/firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md.
const VERSION: u32 = 48;
const MARKER_INTERVAL: u32 = 1;

/// Categories by class of activity, in the viewer's colours.
const CATEGORIES: [(&str, &str); 8] = [
    ("cpu", "green"),
    ("io", "blue"),
    ("lwlock", "yellow"),
    ("lock", "orange"),
    ("client", "magenta"),
    ("ipc", "lightblue"),
    ("other", "grey"),
    ("kernel", "brown"),
];
const CPU: usize = 0;
const OTHER: usize = 6;
const KERNEL: usize = 7;

/// The profile as a file.
pub fn encode(profile: &Profile, timeline: &Timeline) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut packed, &file(profile, timeline))?;
    packed.flush()?;
    packed.finish()
}

fn file(profile: &Profile, timeline: &Timeline) -> Value {
    let categories: Vec<Value> = CATEGORIES
        .iter()
        .map(|(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] }))
        .collect();
    let threads: Vec<Value> = timeline.tracks.iter().map(|track| thread(profile, track)).collect();
    json!({
        "meta": {
            "interval": 1e3 / profile.hertz,
            "startTime": (profile.time - profile.seconds) * 1e3,
            "abi": "",
            "misc": "",
            "oscpu": "Linux",
            "platform": "Linux",
            "processType": 0,
            "extensions": { "id": [], "name": [], "baseURL": [], "length": 0 },
            "categories": categories,
            "product": profile.server,
            "stackwalk": 1,
            "toolkit": "",
            "version": 27,
            "preprocessedProfileVersion": VERSION,
            "appBuildID": "",
            "debug": false,
            "logicalCPUs": profile.cores,
            "symbolicated": true,
            "markerSchema": [{
                "name": "wait",
                "tooltipLabel": "{marker.data.activity}",
                "tableLabel": "{marker.data.activity} in {marker.data.phase}",
                "display": ["marker-chart", "marker-table", "timeline-overview"],
                "data": [
                    { "key": "activity", "label": "Wait event", "format": "string" },
                    { "key": "phase", "label": "Phase", "format": "string" },
                ],
            }],
        },
        "libs": [],
        "pages": [],
        "threads": threads,
    })
}

fn thread(profile: &Profile, track: &Track) -> Value {
    let mut texts = StringTable::default();
    // A function is a frame, a frame a function.
    let mut functions: HashMap<usize, usize> = HashMap::new();
    let (mut names, mut kernel, mut resources) = (Vec::new(), Vec::new(), Vec::new());
    let mut images: HashMap<&str, usize> = HashMap::new();
    let mut stacks: HashMap<(Option<usize>, usize), usize> = HashMap::new();
    let (mut prefixes, mut frames) = (Vec::new(), Vec::new());
    let (mut times, mut sampled) = (Vec::new(), Vec::new());
    for (at, number) in &track.samples {
        let mut prefix = None;
        for symbol in profile.stacks[*number].frames.iter().rev() {
            let frame = *functions.entry(*symbol).or_insert_with(|| {
                let symbol = &profile.symbols[*symbol];
                names.push(texts.number(&symbol.name));
                kernel.push(symbol.is_kernel());
                let next = images.len();
                resources.push(*images.entry(&symbol.image).or_insert(next));
                names.len() - 1
            });
            prefix = Some(*stacks.entry((prefix, frame)).or_insert_with(|| {
                prefixes.push(prefix);
                frames.push(frame);
                frames.len() - 1
            }));
        }
        times.push(at * 1e3);
        sampled.push(prefix);
    }
    let mut libraries: Vec<(&str, usize)> = images.into_iter().collect();
    libraries.sort_by_key(|library| library.1);
    let resource_names: Vec<usize> =
        libraries.iter().map(|library| texts.number(Profile::short(library.0))).collect();
    let category = |is_kernel: &bool| if *is_kernel { KERNEL } else { CPU };
    let mut markers: Vec<_> = track.waits.iter().collect();
    markers.sort_by(|a, b| a.begin.total_cmp(&b.begin));
    let class = |name: &str| CATEGORIES.iter().position(|known| known.0 == name).unwrap_or(OTHER);
    let marker_names: Vec<usize> =
        markers.iter().map(|marker| texts.number(&marker.account.activity)).collect();
    let none = |length: usize| vec![Value::Null; length];
    let of = |value: Value, length: usize| vec![value; length];
    let (n, f, m) = (times.len(), names.len(), markers.len());
    json!({
        "processType": "default",
        "processName": format!("{} {}", track.name, track.pid),
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "name": track.name,
        "isMainThread": true,
        "pid": track.pid.to_string(),
        "tid": track.pid,
        "samples": {
            "length": n,
            "stack": sampled,
            "time": times,
            "weight": null,
            "weightType": "samples",
        },
        "markers": {
            "length": m,
            "name": marker_names,
            "startTime": markers.iter().map(|marker| marker.begin * 1e3).collect::<Vec<_>>(),
            "endTime": markers.iter().map(|marker| marker.end * 1e3).collect::<Vec<_>>(),
            "phase": of(MARKER_INTERVAL.into(), m),
            "category": markers.iter().map(|marker| class(&marker.class)).collect::<Vec<_>>(),
            "data": markers.iter().map(|marker| json!({
                "type": "wait",
                "activity": marker.account.activity,
                "phase": marker.account.phase,
            })).collect::<Vec<_>>(),
        },
        "stackTable": {
            "length": frames.len(),
            "prefix": prefixes,
            "frame": frames,
            "category": frames.iter().map(|frame| category(&kernel[*frame])).collect::<Vec<_>>(),
            "subcategory": vec![0; frames.len()],
        },
        "frameTable": {
            "length": f,
            "address": vec![-1; f],
            "inlineDepth": vec![0; f],
            "category": kernel.iter().map(category).collect::<Vec<_>>(),
            "subcategory": vec![0; f],
            "func": (0..f).collect::<Vec<_>>(),
            "nativeSymbol": none(f),
            "innerWindowID": none(f),
            "implementation": none(f),
            "line": none(f),
            "column": none(f),
        },
        "funcTable": {
            "length": f,
            "name": names,
            "isJS": of(false.into(), f),
            "relevantForJS": of(false.into(), f),
            "resource": resources,
            "fileName": none(f),
            "lineNumber": none(f),
            "columnNumber": none(f),
        },
        "resourceTable": {
            "length": resource_names.len(),
            "lib": none(resource_names.len()),
            "name": resource_names,
            "host": none(libraries.len()),
            "type": vec![1; libraries.len()],
        },
        "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
        "stringArray": texts.into_texts(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn columns_of_each_table_have_its_length_and_refer_to_what_is_there() {
        let file = file(&sample::profile(), &sample::timeline());
        let thread = &file["threads"][0];
        for table in
            ["samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable"]
        {
            let length = thread[table]["length"].as_u64().unwrap() as usize;
            assert!(length > 0, "{table}");
            for (key, column) in thread[table].as_object().unwrap() {
                if let Some(column) = column.as_array() {
                    assert_eq!(column.len(), length, "{table}.{key}");
                }
            }
        }
        let text = |number: &Value| &thread["stringArray"][number.as_u64().unwrap() as usize];
        assert_eq!(text(&thread["markers"]["name"][0]), "IO:DataFileRead");
        let stack = thread["samples"]["stack"][0].as_u64().unwrap() as usize;
        let frame = thread["stackTable"]["frame"][stack].as_u64().unwrap() as usize;
        assert_eq!(text(&thread["funcTable"]["name"][frame]), "leaf");
    }

    #[test]
    fn times_are_milliseconds_and_kernel_and_waits_have_their_colours() {
        let mut timeline = sample::timeline();
        let track = &mut timeline.tracks[0];
        let mut early = track.waits[0].clone();
        (early.begin, early.end, early.class) = (0.02, 0.03, "unheard of".into());
        track.waits.push(early);
        let file = file(&sample::profile(), &timeline);
        assert_eq!(
            (&file["meta"]["interval"], &file["meta"]["startTime"]),
            (&json!(10.0), &json!(1_782_907_199e3))
        );
        let thread = &file["threads"][0];
        assert_eq!(thread["processName"], "client backend 7");
        assert_eq!(thread["samples"]["time"], json!([50.0, 60.0]));
        let markers = &thread["markers"];
        assert_eq!(
            (&markers["startTime"], &markers["endTime"]),
            (&json!([20.0, 100.0]), &json!([30.0, 200.0]))
        );
        let category = |number: &Value| CATEGORIES[number.as_u64().unwrap() as usize].0;
        let of_markers: Vec<&str> =
            markers["category"].as_array().unwrap().iter().map(category).collect();
        assert_eq!(of_markers, ["other", "io"]);
        // From the innermost frame of a stack to its beginning: function, category, image.
        let text = |number: &Value| {
            thread["stringArray"][number.as_u64().unwrap() as usize].as_str().unwrap()
        };
        let at = |table: &str, column: &str, row: &Value| {
            thread[table][column][row.as_u64().unwrap() as usize].clone()
        };
        let mut found = Vec::new();
        let mut stack = thread["samples"]["stack"][1].clone();
        while !stack.is_null() {
            let frame = at("stackTable", "frame", &stack);
            let (name, resource) =
                (at("funcTable", "name", &frame), at("funcTable", "resource", &frame));
            let image = at("resourceTable", "name", &resource);
            let colour = category(&at("stackTable", "category", &stack));
            assert_eq!(colour, category(&at("frameTable", "category", &frame)));
            found.push((text(&name), colour, text(&image)));
            stack = at("stackTable", "prefix", &stack);
        }
        let expected = [
            ("do_read", "kernel", "kernel"),
            ("leaf", "cpu", "postgres"),
            ("main", "cpu", "postgres"),
        ];
        assert_eq!(found, expected);
    }
}

//! Results: rows as text, and JSON.

use crate::group;
use crate::limits::Limits;
use broadloom::device::Machine;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A rate per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// 10⁹ bytes per second.
    Gbps(f64),
    /// 10⁹ operations on floats per second.
    Gflops(f64),
    /// 10⁶ thread-instructions per second, plain and watched by the checker.
    Instructions {
        /// The rate without the checker.
        plain: f64,
        /// The rate with the checker.
        watched: f64,
    },
}

/// The measurements of one benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of its group.
    pub group: &'static str,
    /// Name of the benchmark.
    pub name: String,
    /// The size, as text.
    pub size: String,
    /// ID of the device.
    pub device: String,
    /// Milliseconds of a repetition.
    pub ms: f64,
    /// Milliseconds that a GPU works for a repetition: kernels, copies and fills together.
    pub device_ms: Option<f64>,
    /// The time as a rate.
    pub rate: Option<Rate>,
    /// Fraction of the machine's limit; 1 is the limit itself.
    pub limit_share: Option<f64>,
    /// Number of launches in a repetition.
    pub launches: u64,
    /// Number of host waits for the device in a repetition, if they are counted.
    pub waits: Option<u64>,
    /// Milliseconds to make the kernels ready.
    pub compile_ms: Option<f64>,
    /// Milliseconds that the planner predicts, if it plans the whole repetition.
    pub predicted_ms: Option<f64>,
    /// Milliseconds of a repetition of the straight translation, for an effect.
    pub straight_ms: Option<f64>,
    /// Minimum bytes that any plan must move, for an effect: its input and its result.
    pub bytes: Option<f64>,
    /// Milliseconds of the fastest repetition, for an effect; also of the peer's.
    pub fastest_ms: Option<(f64, Option<f64>)>,
    /// The peer of the comparison.
    pub peer: Option<String>,
    /// Milliseconds of a repetition of the peer.
    pub peer_ms: Option<f64>,
    /// Other libraries, and milliseconds of a repetition with each.
    pub others: Vec<(String, f64)>,
    /// The straight translation of a stream program.
    pub straight: Option<StraightTimes>,
}

/// Times of the straight translation of a stream program: one kernel for each filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StraightTimes {
    /// Milliseconds of a repetition.
    pub ms: f64,
    /// Milliseconds that a GPU works for a repetition.
    pub device_ms: Option<f64>,
    /// Number of launches in a repetition.
    pub launches: u64,
}

impl Row {
    /// Makes a row with a time and nothing else.
    pub(crate) fn timed(group: &'static str, name: &str, size: String, device: String, time: Duration) -> Row {
        Row {
            group,
            name: name.to_owned(),
            size,
            device,
            ms: time.as_secs_f64() * 1e3,
            device_ms: None,
            rate: None,
            limit_share: None,
            launches: 0,
            waits: None,
            compile_ms: None,
            predicted_ms: None,
            straight_ms: None,
            bytes: None,
            fastest_ms: None,
            peer: None,
            peer_ms: None,
            others: vec![],
            straight: None,
        }
    }

    /// Returns our time divided by the peer's.
    pub fn peer_ratio(&self) -> Option<f64> {
        self.peer_ms.filter(|&ms| ms > 0.0).map(|ms| self.ms / ms)
    }

    /// Returns the relative error of the prediction: positive if the predicted time is too long.
    pub fn prediction_error(&self) -> Option<f64> {
        self.predicted_ms.filter(|_| self.ms > 0.0).map(|predicted| predicted / self.ms - 1.0)
    }

    /// Returns the ratio of the straight translation's time to ours, by the clock of a GPU if there is one.
    pub fn straight_ratio(&self) -> Option<f64> {
        let straight = self.straight?;
        let (theirs, ours) = straight.device_ms.zip(self.device_ms).unwrap_or((straight.ms, self.ms));
        (ours > 0.0).then(|| theirs / ours)
    }

    /// The column headings for [`Row::line`].
    pub const HEADER: &'static str = "benchmark          size             device         ms       rate          of limit  kernels  compile ms   peer ms   ratio";

    /// Formats the row as one line of text.
    pub fn line(&self) -> String {
        let number = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        let rate = match self.rate {
            Some(Rate::Gbps(rate)) => format!("{rate:.2} GB/s"),
            Some(Rate::Gflops(rate)) => format!("{rate:.2} GFLOP/s"),
            Some(Rate::Instructions { plain, watched }) => format!("{plain:.1} M/s, {watched:.1} watched"),
            None => "-".to_owned(),
        };
        let share = self.limit_share.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        let of_device = self.device_ms.map_or(String::new(), |ms| format!("  (device: {ms:.4} ms)"));
        let predicted = match (self.predicted_ms, self.prediction_error()) {
            (Some(ms), Some(error)) => format!("  (predicted: {ms:.3} ms, {:+.0} %)", 100.0 * error),
            _ => String::new(),
        };
        let plain = self.straight_ms.map_or(String::new(), |ms| {
            let bytes = self.bytes.map_or(String::new(), |bytes| format!("; {:.0} MB of traffic", bytes / 1e6));
            let fastest = match self.fastest_ms {
                Some((own, Some(peer))) => format!("; fastest {own:.2} ms, the peer {peer:.2} ms"),
                Some((own, None)) => format!("; fastest {own:.2} ms"),
                None => String::new(),
            };
            format!("  (straight: {ms:.1} ms, {:.2} ×{bytes}{fastest})", ms / self.ms.max(1e-9))
        });
        let straight = match (self.straight, self.straight_ratio()) {
            (Some(StraightTimes { ms, launches, .. }), Some(ratio)) => {
                format!("  (straight: {ms:.3} ms, {launches} kernels, {ratio:.2}×)")
            }
            _ => plain,
        };
        let waits = self.waits.map_or(String::new(), |waits| format!("  ({waits} waits)"));
        format!(
            "{:<18} {:<16} {:<8} {:>10.3}  {:>15}  {:>8}  {:>7}  {:>10}  {:>8}  {:>6}{waits}{of_device}{predicted}{straight}",
            self.name,
            self.size,
            self.device,
            self.ms,
            rate,
            share,
            if self.launches > 0 { self.launches.to_string() } else { "-".to_owned() },
            number(self.compile_ms, 1),
            number(self.peer_ms, 3),
            number(self.peer_ratio(), 2)
        )
        .trim_end()
        .to_owned()
    }

    fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
        put("group", json!(self.group));
        put("name", json!(self.name));
        put("size", json!(self.size));
        put("device", json!(self.device));
        put("ms", json!(self.ms));
        if let Some(ms) = self.device_ms {
            put("device_ms", json!(ms));
        }
        match self.rate {
            Some(Rate::Gflops(rate)) => put("gflops", json!(rate)),
            Some(Rate::Gbps(rate)) => put("gbps", json!(rate)),
            Some(Rate::Instructions { .. }) | None => put("gbps", Value::Null),
        }
        put("limit_share", json!(self.limit_share));
        put("launches", json!(self.launches));
        if let Some(waits) = self.waits {
            put("waits", json!(waits));
        }
        put("compile_ms", json!(self.compile_ms));
        if let Some(ms) = self.predicted_ms {
            put("predicted_ms", json!(ms));
            put("prediction_error", json!(self.prediction_error()));
        }
        if let Some(ms) = self.straight_ms {
            put("straight_ms", json!(ms));
            put("straight_ratio", json!(ms / self.ms.max(1e-9)));
        }
        if let Some(bytes) = self.bytes {
            put("bytes", json!(bytes));
        }
        if let Some((ms, peer_ms)) = self.fastest_ms {
            put("fastest_ms", json!(ms));
            put("peer_fastest_ms", json!(peer_ms));
        }
        put("peer", json!(self.peer));
        put("peer_ms", json!(self.peer_ms));
        put("peer_ratio", json!(self.peer_ratio()));
        if let Some(straight) = self.straight {
            put("straight_ms", json!(straight.ms));
            put("straight_device_ms", json!(straight.device_ms));
            put("straight_launches", json!(straight.launches));
            put("straight_ratio", json!(self.straight_ratio()));
        }
        if !self.others.is_empty() {
            let others: Map<String, Value> = self.others.iter().map(|(name, ms)| (name.clone(), json!(ms))).collect();
            put("others", Value::Object(others));
        }
        Value::Object(object)
    }
}

/// A figure of the device as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name in JSON, with its unit.
    pub key: String,
    /// The measured number, in the unit of the figure.
    pub value: f64,
    /// The figure as text.
    pub text: String,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Description of the measured device.
    pub machine: Machine,
    /// The measured limits of the host.
    pub limits: Limits,
    /// The measured rows.
    pub rows: Vec<Row>,
    /// Further figures.
    pub figures: Vec<Figure>,
    /// Benchmarks without a figure: name and reason.
    pub failures: Vec<(String, String)>,
}

impl Report {
    /// Returns the geometric mean of the ratios against peers, and the row with the worst ratio.
    pub fn against_peers(&self) -> Option<(f64, &Row)> {
        let contests = || self.rows.iter().filter(|row| row.group != group::SEGMENTS);
        let rated = || contests().filter_map(|row| Some((row.peer_ratio()?, row)));
        let logarithms: Vec<f64> = rated().map(|(ratio, _)| ratio.ln()).collect();
        let worst = rated().max_by(|a, b| a.0.total_cmp(&b.0))?.1;
        Some(((logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp(), worst))
    }

    /// Returns the geometric mean of the ratios of straight translations to restructured programs, and the
    /// number of programs.
    pub fn against_straight(&self) -> Option<(f64, usize)> {
        let ratios: Vec<f64> = self.rows.iter().filter_map(Row::straight_ratio).collect();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        (!ratios.is_empty()).then_some((mean, ratios.len()))
    }

    /// Returns a Markdown table of our times and all others, in milliseconds. Times that beat ours are bold.
    /// Returns `None` if there are no peers other than C++.
    pub fn side_by_side(&self) -> Option<String> {
        let mut names: Vec<&str> = vec![];
        for (name, _) in self.rows.iter().flat_map(|row| &row.others) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return None;
        }
        let mut table = format!("| benchmark | size | ours | C++ | {} |\n| --- | --- |", names.join(" | "));
        table += &" ---: |".repeat(names.len() + 2);
        for row in self.rows.iter().filter(|row| !row.others.is_empty()) {
            let digits = if row.ms < 10.0 { 2 } else { 1 };
            let shown = |ms: Option<f64>| match ms {
                Some(ms) if ms < row.ms => format!("**{ms:.digits$}**"),
                Some(ms) => format!("{ms:.digits$}"),
                None => "–".to_owned(),
            };
            let other = |name: &&str| shown(row.others.iter().find(|(other, _)| other == name).map(|(_, ms)| *ms));
            let others: Vec<String> = names.iter().map(other).collect();
            let (name, size, ms) = (&row.name, &row.size, row.ms);
            table += &format!("\n| {name} | {size} | {ms:.digits$} | {} | {} |", shown(row.peer_ms), others.join(" | "));
        }
        Some(table)
    }

    /// Returns the report as JSON: `{"machine": {…}, "results": [{…}, …]}`.
    pub fn to_json(&self) -> Value {
        let mut machine = Map::new();
        machine.insert("device".into(), json!(self.machine.id));
        machine.insert("name".into(), json!(self.machine.name));
        machine.insert("cores".into(), json!(self.machine.multiprocessors));
        machine.insert("cache_bytes".into(), json!(self.machine.cache_bytes));
        machine.insert("read_gbps".into(), json!(self.limits.read.map(|rate| rate / 1e9)));
        machine.insert("triad_gbps".into(), json!(self.limits.triad.map(|rate| rate / 1e9)));
        machine.insert("peak_gflops".into(), json!(self.limits.operations.map(|rate| rate / 1e9)));
        machine.extend(self.figures.iter().map(|figure| (figure.key.clone(), json!(figure.value))));
        json!({ "machine": machine, "results": self.rows.iter().map(Row::to_json).collect::<Vec<_>>() })
    }
}

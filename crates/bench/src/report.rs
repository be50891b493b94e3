//! What came out: rows for people, JSON for programs.

use crate::limits::Limits;
use broadloom::device::Machine;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A figure per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// 10⁹ bytes per second.
    Gbps(f64),
    /// 10⁹ operations on floats per second.
    Gflops(f64),
    /// 10⁶ thread-instructions per second, plain and watched by the checker.
    Instructions {
        /// Not watched.
        plain: f64,
        /// Watched.
        watched: f64,
    },
}

/// What was measured of one benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The group.
    pub group: &'static str,
    /// The benchmark.
    pub name: String,
    /// The size, for people.
    pub size: String,
    /// The device.
    pub device: String,
    /// Milliseconds of a repetition.
    pub ms: f64,
    /// Milliseconds of it that a GPU was at work, its kernels, copies and fills together.
    pub device_ms: Option<f64>,
    /// The same as a rate.
    pub rate: Option<Rate>,
    /// What part of the machine's limit that is; 1 is all of it.
    pub limit_share: Option<f64>,
    /// Launches of a repetition.
    pub launches: u64,
    /// Waits of the host for the device in a repetition, where they are counted.
    pub waits: Option<u64>,
    /// Milliseconds until the kernels were ready.
    pub compile_ms: Option<f64>,
    /// Milliseconds that the planner predicts, where it plans all of a repetition.
    pub predicted_ms: Option<f64>,
    /// Milliseconds of a repetition of the straight translation, for an effect.
    pub straight_ms: Option<f64>,
    /// Bytes that no plan can avoid to move, for an effect: its input and its result.
    pub bytes: Option<f64>,
    /// Milliseconds of the fastest repetition, for an effect; of the peer's too.
    pub fastest_ms: Option<(f64, Option<f64>)>,
    /// What it is compared with.
    pub peer: Option<String>,
    /// Milliseconds of a repetition of the peer.
    pub peer_ms: Option<f64>,
    /// Other libraries, and milliseconds of a repetition with each.
    pub others: Vec<(String, f64)>,
    /// The straight translation of a stream program.
    pub straight: Option<Straight>,
}

/// Times of the straight translation of a stream program: one kernel for each filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Straight {
    /// Milliseconds of a repetition.
    pub ms: f64,
    /// Milliseconds of it that a GPU was at work.
    pub device_ms: Option<f64>,
    /// Launches of a repetition.
    pub launches: u64,
}

impl Row {
    /// A row with a time and nothing else.
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

    /// Our time over the peer's.
    pub fn peer_ratio(&self) -> Option<f64> {
        self.peer_ms.filter(|&ms| ms > 0.0).map(|ms| self.ms / ms)
    }

    /// The error of the prediction: by which part of the measured time the predicted one is longer.
    pub fn prediction_error(&self) -> Option<f64> {
        self.predicted_ms.filter(|_| self.ms > 0.0).map(|predicted| predicted / self.ms - 1.0)
    }

    /// Returns by how much the straight translation is slower: by the clock of a GPU where there is one.
    pub fn straight_ratio(&self) -> Option<f64> {
        let straight = self.straight?;
        let (theirs, ours) = straight.device_ms.zip(self.device_ms).unwrap_or((straight.ms, self.ms));
        (ours > 0.0).then(|| theirs / ours)
    }

    /// The columns of [`Row`]'s lines.
    pub const HEADER: &'static str = "benchmark          size             device         ms       rate          of limit  kernels  compile ms   peer ms   ratio";

    /// One line for people.
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
            (Some(Straight { ms, launches, .. }), Some(ratio)) => {
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

/// A figure that is no benchmark: of the device as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name in JSON, with its unit.
    pub key: String,
    /// Its value.
    pub value: f64,
    /// What it says, for people.
    pub text: String,
}

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The device.
    pub machine: Machine,
    /// What the host can do at most.
    pub limits: Limits,
    /// What was measured.
    pub rows: Vec<Row>,
    /// Further figures.
    pub figures: Vec<Figure>,
    /// Benchmarks without a figure, and why: name and reason.
    pub failures: Vec<(String, String)>,
}

impl Report {
    /// Geometric mean of the ratios against peers, and the row with the worst.
    pub fn against_peers(&self) -> Option<(f64, &Row)> {
        let contests = || self.rows.iter().filter(|row| row.group != crate::segments::GROUP);
        let rated = || contests().filter_map(|row| Some((row.peer_ratio()?, row)));
        let logarithms: Vec<f64> = rated().map(|(ratio, _)| ratio.ln()).collect();
        let worst = rated().max_by(|a, b| a.0.total_cmp(&b.0))?.1;
        Some(((logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp(), worst))
    }

    /// Geometric mean of the ratios of straight translations to restructured programs, with the number of programs.
    pub fn against_straight(&self) -> Option<(f64, usize)> {
        let ratios: Vec<f64> = self.rows.iter().filter_map(Row::straight_ratio).collect();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        (!ratios.is_empty()).then_some((mean, ratios.len()))
    }

    /// A table of ours against everything else, in milliseconds, as Markdown; `None` where there is nothing else but C++. What beats us is set in bold.
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

    /// `{"machine": {…}, "results": [{…}, …]}`.
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

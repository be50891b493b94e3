//! The table at the end.

use std::time::Duration;

/// Times of a job.
pub(crate) struct Times {
    /// With an empty cache of compiled code.
    pub(crate) first: Duration,
    /// With a full one.
    pub(crate) again: Duration,
    /// A plain loop on one core; `None` if there is none to compare with.
    pub(crate) plain: Option<Duration>,
}

/// Row of the table.
pub(crate) struct Row {
    pub(crate) job: &'static str,
    pub(crate) answer: String,
    pub(crate) times: Times,
}

/// Returns a time with three digits.
fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.9995 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

/// Renders the table, with columns as wide as their contents.
pub(crate) fn table(rows: &[Row]) -> String {
    let heading = ["job", "answer", "first run", "again", "plain, 1 core", "ratio"].map(str::to_owned);
    let cells = |row: &Row| {
        let Times { first, again, plain } = row.times;
        let ratio = plain.map_or("–".into(), |plain| format!("{:.1} ×", plain.as_secs_f64() / again.as_secs_f64()));
        [row.job.to_owned(), row.answer.clone(), shown(first), shown(again), plain.map_or("–".into(), shown), ratio]
    };
    let lines: Vec<[String; 6]> = std::iter::once(heading).chain(rows.iter().map(cells)).collect();
    let widths: [usize; 6] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            // Words to the left, figures to the right.
            text += &if column < 2 { format!("{cell:<width$}   ") } else { format!("{cell:>width$}   ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        if index == 0 {
            text += &"─".repeat(widths.iter().sum::<usize>() + 3 * (widths.len() - 1));
            text.push('\n');
        }
    }
    text
}

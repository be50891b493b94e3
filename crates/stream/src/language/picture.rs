//! Pictures of graphs as SVG, drawn in layers.
//!
//! A box stands one layer below the lowest of the boxes that feed it. A line that crosses layers gets a bend
//! point in each of them. Boxes and bend points are ordered by the mean position of their neighbours, first
//! in the layer above, then in the layer below. This is repeated a few times.

use std::fmt::Write as _;

/// Maximum number of boxes in a picture.
pub const MAX_BOXES: usize = 1000;

/// Boxes connected by lines.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// One box for each node.
    pub boxes: Vec<PictureBox>,
    /// One line for each tape.
    pub lines: Vec<Line>,
    /// Names of the box colours.
    pub legend: Vec<String>,
}

/// A drawn node: its text, colour and outline.
#[derive(Clone, Debug, Default)]
pub struct PictureBox {
    /// Its first line of text.
    pub label: String,
    /// Its second line of text, in small letters. It may be empty.
    pub note: String,
    /// Its colour, as an index into the legend.
    pub colour: Option<usize>,
    /// True if it only passes items on: a splitter or joiner.
    pub is_wire: bool,
}

/// A line from one box to another.
#[derive(Clone, Debug)]
pub struct Line {
    /// The source box.
    pub from: usize,
    /// The target box.
    pub to: usize,
    /// True if it leads back up, as in a loop.
    pub is_back: bool,
}

const COLOURS: [&str; 8] = ["#cfe3f7", "#fde2c4", "#d7efd0", "#f6d3da", "#e6dcf5", "#fbf3c0", "#d3efee", "#e6e1da"];
const ROW: f64 = 64.0;
const HEIGHT: f64 = 36.0;
const GAP: f64 = 16.0;

/// A positioned box or bend point.
struct PositionedBox {
    layer: usize,
    width: f64,
    above: Vec<usize>,
    below: Vec<usize>,
    /// The x coordinate of the centre.
    x: f64,
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Error for a picture with more boxes than can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the graph has {0} nodes; pictures have at most {MAX_BOXES}")]
pub struct TooManyBoxes(pub usize);

impl Picture {
    /// Draws the picture. Fails if it has too many boxes.
    pub fn to_svg(&self) -> Result<String, TooManyBoxes> {
        if self.boxes.len() > MAX_BOXES {
            return Err(TooManyBoxes(self.boxes.len()));
        }
        let layers = self.layers();
        let (mut placed, paths) = self.placed(&layers);
        let mut rows: Vec<Vec<usize>> = vec![vec![]; layers.iter().max().map_or(0, |last| last + 1)];
        placed.iter().enumerate().for_each(|(index, shape)| rows[shape.layer].push(index));
        arrange(&mut rows, &mut placed);
        let width = rows.iter().flatten().map(|index| placed[*index].x + placed[*index].width / 2.0).fold(200.0, f64::max) + GAP;
        let legend = if self.legend.is_empty() { 0.0 } else { 20.0 + 18.0 * self.legend.len() as f64 };
        let height = rows.len() as f64 * ROW + GAP + legend;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <g fill=\"none\" stroke=\"#555\">\n"
        );
        let top = |index: usize| GAP + placed[index].layer as f64 * ROW;
        for (line, path) in self.lines.iter().zip(&paths) {
            let dashed = if line.is_back { " stroke-dasharray=\"4 3\"" } else { "" };
            let mut points = String::new();
            for (step, index) in path.iter().enumerate() {
                let (first, last) = (step == 0, step + 1 == path.len());
                let x = placed[*index].x;
                if !first {
                    let _ = write!(points, "{x:.0},{:.0} ", top(*index) - if line.is_back { -HEIGHT } else { 0.0 });
                }
                if !last {
                    let _ = write!(points, "{x:.0},{:.0} ", top(*index) + if line.is_back { 0.0 } else { HEIGHT });
                }
            }
            let _ = writeln!(text, "<polyline points=\"{}\"{dashed}/>", points.trim_end());
            if let Some(end) = path.last().filter(|_| !line.is_back) {
                let (x, y) = (placed[*end].x, top(*end));
                let _ = writeln!(text, "<path d=\"M{x:.0} {y:.0}l-3 -6h6z\" fill=\"#555\" stroke=\"none\"/>");
            }
        }
        text += "</g>\n";
        for (index, shape) in self.boxes.iter().enumerate() {
            let (x, y, width) = (placed[index].x, top(index), placed[index].width);
            let fill = shape.colour.map_or("#f4f4f4", |colour| COLOURS[colour % COLOURS.len()]);
            let round = if shape.is_wire { 16 } else { 3 };
            let _ = writeln!(
                text,
                "<rect x=\"{:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{HEIGHT:.0}\" rx=\"{round}\" fill=\"{fill}\" stroke=\"#333\"/>",
                x - width / 2.0
            );
            let line = if shape.note.is_empty() { y + 22.0 } else { y + 15.0 };
            let _ = writeln!(text, "<text x=\"{x:.0}\" y=\"{line:.0}\">{}</text>", escape(&shape.label));
            if !shape.note.is_empty() {
                let _ =
                    writeln!(text, "<text x=\"{x:.0}\" y=\"{:.0}\" font-size=\"10\">{}</text>", y + 29.0, escape(&shape.note));
            }
        }
        for (number, name) in self.legend.iter().enumerate() {
            let y = height - legend + 18.0 * number as f64;
            let fill = COLOURS[number % COLOURS.len()];
            let _ = writeln!(text, "<rect x=\"{GAP}\" y=\"{y:.0}\" width=\"14\" height=\"14\" fill=\"{fill}\" stroke=\"#333\"/>");
            let _ =
                writeln!(text, "<text x=\"{}\" y=\"{:.0}\" text-anchor=\"start\">{}</text>", GAP + 20.0, y + 11.0, escape(name));
        }
        Ok(text + "</svg>\n")
    }

    /// Returns the layer of each box: below all boxes that feed it.
    fn layers(&self) -> Vec<usize> {
        let mut layers = vec![0; self.boxes.len()];
        // Each line moves a box down at most once for each box above it. The bound also ends cycles without a
        // marked back line.
        for _ in 0..self.boxes.len() {
            let mut changed = false;
            for line in self.lines.iter().filter(|line| !line.is_back) {
                if layers[line.to] <= layers[line.from] && layers[line.from] < self.boxes.len() {
                    layers[line.to] = layers[line.from] + 1;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        layers
    }

    /// Returns the boxes and bend points, and for each line the points it passes through.
    fn placed(&self, layers: &[usize]) -> (Vec<PositionedBox>, Vec<Vec<usize>>) {
        let new = |layer: usize, width: f64| PositionedBox { layer, width, above: vec![], below: vec![], x: 0.0 };
        let wide = |shape: &PictureBox| 7.2 * shape.label.chars().count().max(shape.note.chars().count() * 5 / 6) as f64 + 16.0;
        let mut placed: Vec<PositionedBox> =
            self.boxes.iter().zip(layers).map(|(shape, layer)| new(*layer, wide(shape).max(40.0))).collect();
        let mut paths = vec![];
        for line in &self.lines {
            let mut path = vec![line.from];
            if !line.is_back {
                for layer in layers[line.from] + 1..layers[line.to] {
                    path.push(placed.len());
                    placed.push(new(layer, 8.0));
                }
            }
            path.push(line.to);
            if !line.is_back {
                for pair in path.windows(2) {
                    placed[pair[0]].below.push(pair[1]);
                    placed[pair[1]].above.push(pair[0]);
                }
            }
            paths.push(path);
        }
        (placed, paths)
    }
}

/// Orders the rows and sets the positions of the boxes and bend points in them.
fn arrange(rows: &mut [Vec<usize>], placed: &mut [PositionedBox]) {
    let spread = |row: &[usize], placed: &mut [PositionedBox]| {
        let total: f64 = row.iter().map(|index| placed[*index].width + GAP).sum();
        let mut x = -total / 2.0;
        for index in row {
            placed[*index].x = x + (placed[*index].width + GAP) / 2.0;
            x += placed[*index].width + GAP;
        }
    };
    rows.iter().for_each(|row| spread(row, placed));
    for round in 0..6 {
        let downward = round % 2 == 0;
        let order: Vec<usize> = if downward { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for number in order {
            let mean = |index: &usize| {
                let own = &placed[*index];
                let near = if downward { &own.above } else { &own.below };
                match near.len() {
                    0 => own.x,
                    count => near.iter().map(|other| placed[*other].x).sum::<f64>() / count as f64,
                }
            };
            let mut keyed: Vec<(f64, usize)> = rows[number].iter().map(|index| (mean(index), *index)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[number] = keyed.into_iter().map(|(_, index)| index).collect();
            spread(&rows[number], placed);
        }
    }
    let left = placed.iter().map(|own| own.x - own.width / 2.0).fold(0.0, f64::min);
    placed.iter_mut().for_each(|own| own.x += GAP - left);
}

//! The table of effects.

use crate::declaration::{
    Angle, Choice, CurveShape, Effect, Filter, FlipAxis, Inputs, Interpolation, Kind, Parameter, Pattern, Premultiply, Threshold,
    grid_range,
};
use crate::effects::{self, Extreme, calls};
use crate::image::Alpha;
use crate::reference::{alpha, blur, clahe, color, edges, grain, laplacian, rank, raw, resize, smooth, turn, warp};

const IMAGE: Inputs = Inputs::Images(&["image"]);
const MIRROR: Option<&str> = Some("mirror");
const CLAMP: Option<&str> = Some("clamp");

const fn parameter(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Parameter {
    Parameter { name, kind, default: Some(default), doc }
}

const SIGMA: Parameter =
    parameter("sigma", Kind::Number(0.0, 10000.0), "2", "standard deviation of the Gaussian, in pixels; 0 changes nothing");

const fn radius(default: &'static str) -> Parameter {
    parameter("radius", Kind::Integer(0, 10000), default, "radius of the square, in pixels")
}

const PATTERN: Parameter =
    parameter("pattern", Kind::Choice(Pattern::WORDS), "rggb", "colours of the first 2×2 pixels of the sensor, row by row");

const BLACK: Parameter = parameter("black", Kind::Number(-1e30, 1e30), "0", "value of black");
const WHITE: Parameter = parameter("white", Kind::Number(-1e30, 1e30), "1", "value of white");
const GAMMA: Parameter = parameter("gamma", Kind::Number(0.01, 100.0), "2.2", "exponent of the curve, inverted");
const MATRIX: Parameter = parameter("matrix", Kind::Numbers(9), "1,0,0,0,1,0,0,0,1", "matrix, row by row");
const LOW: Parameter = parameter("low", Kind::Number(-1e30, 1e30), "0", "lower end of the range of values");
const HIGH: Parameter = parameter("high", Kind::Number(-1e30, 1e30), "1", "upper end of the range of values");

/// Effects in alphabetical order.
pub const EFFECTS: &[Effect] = &[
    Effect {
        name: "bilateral",
        summary: "bilateral filter with exact weights",
        formula: "Σ w·x(q) / Σ w over the square, w = exp(−|q−p|² / 2·sigma_space²) · exp(−(x(q)−x(p))² / 2·sigma_range²)",
        inputs: IMAGE,
        parameters: &[
            parameter("radius", Kind::Integer(0, 1000), "5", "radius of the square, in pixels"),
            parameter("sigma_space", Kind::Number(1e-3, 1e6), "3", "standard deviation of distances, in pixels"),
            parameter("sigma_range", Kind::Number(1e-6, 1e30), "0.1", "standard deviation of differences of values"),
        ],
        boundary: MIRROR,
        functor: |call| {
            let (space, range) = (call.number("sigma_space"), call.number("sigma_range"));
            call.each(|x| effects::bilateral(x, call.whole("radius"), space, range, call.boundary()))
        },
        reference: |call| {
            let (space, range) = (call.number("sigma_space"), call.number("sigma_range"));
            call.each(|x, edge| smooth::bilateral(x, edge, call.integer("radius"), space, range))
        },
    },
    Effect {
        name: "bilateral_grid",
        summary: "bilateral filter by a grid in space and value",
        formula: "v = x clamped to low … high; cell (i, j, k) has the count and the sum of v of the pixels from cell·i − ⌊cell/2⌋ on \
                  along x, from cell·j − ⌊cell/2⌋ on along y, cell×cell of them, with ⌊(v−low)/range + 0.5⌋ = k; pixels outside of the \
                  image by the boundary rule; blur by [1 4 6 4 1] along value, x and y, with empty cells below low and above high; sum / \
                  count, both interpolated trilinearly at (x/cell, y/cell, (v−low)/range)",
        inputs: IMAGE,
        parameters: &[
            parameter("cell", Kind::Integer(1, 1024), "8", "side of a cell, in pixels"),
            parameter("range", Kind::Number(1e-4, 1e30), "0.1", "extent of a cell in value"),
            Parameter { doc: "lower end of the grid in value; values below count as this", ..LOW },
            Parameter { doc: "upper end of the grid in value; values above count as this", ..HIGH },
        ],
        boundary: CLAMP,
        functor: calls::bilateral_grid,
        reference: |call| {
            let (low, high) = grid_range(call.settings)?;
            call.each(|x, edge| smooth::grid(x, edge, call.integer("cell"), call.number("range"), low, high))
        },
    },
    Effect {
        name: "box",
        summary: "mean over a square",
        formula: "Σ x(q) / (2r+1)² over the square of radius r",
        inputs: IMAGE,
        parameters: &[radius("3")],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::box_blur(x, call.whole("radius"), call.boundary())),
        reference: |call| call.each(|x, edge| blur::mean(x, edge, call.integer("radius"))),
    },
    Effect {
        name: "camera",
        summary: "camera pipeline: a picture from the values of a sensor",
        formula: "hot pixels: min(x, greatest of the four pixels at distance 2 along x and y); (x − black) / (white − black); \
                  gains of red and blue; demosaic; matrix · rgb; clip to 0 … 1; v = x^(1/gamma); contrast: with b = 2 − 2^contrast \
                  and a = 2 − 2·b, a·v² + b·v up to 0.5, else 1 − a·(1−v)² − b·(1−v); v + sharpen · (v − [1 2 1]/4 blur of v)",
        inputs: IMAGE,
        parameters: &[
            PATTERN,
            BLACK,
            WHITE,
            parameter("red", Kind::Number(0.0, 1e6), "1", "gain of red"),
            parameter("blue", Kind::Number(0.0, 1e6), "1", "gain of blue"),
            MATRIX,
            GAMMA,
            parameter("contrast", Kind::Number(0.0, 1.0), "0.5", "strength of the S curve; 0 is none"),
            parameter("sharpen", Kind::Number(0.0, 100.0), "1", "strength of sharpening"),
        ],
        boundary: MIRROR,
        functor: calls::camera,
        reference: raw::camera,
    },
    Effect {
        name: "canny",
        summary: "edges, thin and connected",
        formula: "Gaussian of the mean of all planes; Sobel gradients, m = √(gx² + gy²), 0 outside of the image; a pixel is kept where m \
                  is greater than at the neighbour before (above, or left in the same row) and not less than at the one behind, along \
                  the nearest of four directions to the gradient, diagonals included; edges are kept pixels with m > high, and those \
                  with m > low that touch an edge, diagonals included; 1 at edges, else 0",
        inputs: IMAGE,
        parameters: &[
            Parameter { default: Some("1.4"), ..SIGMA },
            parameter("low", Kind::Number(0.0, 1e30), "0.1", "lower threshold of the gradient"),
            parameter("high", Kind::Number(0.0, 1e30), "0.3", "upper threshold of the gradient"),
        ],
        boundary: MIRROR,
        functor: calls::canny,
        reference: edges::canny,
    },
    Effect {
        name: "channels",
        summary: "selection of planes",
        formula: "the planes of the list, in its order: NAME is a plane of the image, NEW=OLD is the plane OLD under another name, \
                  NEW=0.5 is a plane of one value",
        inputs: IMAGE,
        parameters: &[parameter("planes", Kind::Planes, "R,G,B", "planes of the result")],
        boundary: None,
        functor: calls::channels,
        reference: alpha::channels,
    },
    Effect {
        name: "clahe",
        summary: "local contrast: adaptive histogram equalisation with limited contrast",
        formula: "tiles of w × h pixels, w = ⌈width/tiles⌉, h = ⌈height/tiles⌉, pixels outside of the image by the boundary rule; \
                  histogram of bins b = ⌊bins · (x − low) / (high − low)⌋, clamped to the first and the last; counts above max(1, ⌊clip \
                  · w·h / bins⌋) are cut, and 1/bins of what was cut is added to every bin; f(b) = low + (high − low) · (sum of the bins \
                  up to b) / (w·h); f of the tiles around the pixel (i, j), interpolated bilinearly at (i/w − 0.5, j/h − 0.5), tiles \
                  clamped; all planes but alpha",
        inputs: IMAGE,
        parameters: &[
            parameter("tiles", Kind::Integer(1, 256), "8", "tiles along each side"),
            parameter("clip", Kind::Number(0.0, 1e6), "2", "limit of a bin, as a multiple of the mean; 0 is none"),
            parameter("bins", Kind::Integer(2, 65536), "256", "bins of a histogram"),
            LOW,
            HIGH,
        ],
        boundary: MIRROR,
        functor: calls::clahe,
        reference: clahe::clahe,
    },
    Effect {
        name: "close",
        summary: "morphological closing",
        formula: "erode(dilate(x))",
        inputs: IMAGE,
        parameters: &[radius("1")],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::close(x, call.whole("radius"), call.boundary())),
        reference: |call| call.each(|x, edge| rank::close(x, edge, call.integer("radius"))),
    },
    Effect {
        name: "color_matrix",
        summary: "linear combination of red, green and blue",
        formula: "matrix · (r, g, b); other planes stay",
        inputs: IMAGE,
        parameters: &[MATRIX],
        boundary: None,
        functor: |call| call.colors(|x| effects::color_matrix(x, call.matrix())),
        reference: color::matrix,
    },
    Effect {
        name: "composite",
        summary: "one image over another",
        formula: "c + c_b·(1 − a) and a + a_b·(1 − a), where c and a are colour and alpha of the image, c_b and a_b those of the \
                  background; alpha is 1 where there is none; straight colours are multiplied by alpha before; the result has \
                  associated alpha, where the background has alpha",
        inputs: Inputs::Images(&["image", "background"]),
        parameters: &[],
        boundary: None,
        functor: calls::composite,
        reference: alpha::composite,
    },
    Effect {
        name: "crop",
        summary: "part of an image",
        formula: "width × height pixels from column x and row y on, counted from the corner of the image; the result begins at this \
                  corner",
        inputs: IMAGE,
        parameters: &[
            parameter("x", Kind::Integer(0, 1 << 24), "0", "first column"),
            parameter("y", Kind::Integer(0, 1 << 24), "0", "first row"),
            parameter("width", Kind::Integer(0, 1 << 24), "0", "number of columns; 0 is up to the last"),
            parameter("height", Kind::Integer(0, 1 << 24), "0", "number of rows; 0 is up to the last"),
        ],
        boundary: None,
        functor: calls::crop,
        reference: turn::crop,
    },
    Effect {
        name: "curves",
        summary: "tone curve through points",
        formula: "f(x) through (x₀, y₀), (x₁, y₁), …; linear, or the monotone cubic of Fritsch and Carlson; \
                  beyond the ends in a straight line; all planes but alpha",
        inputs: IMAGE,
        parameters: &[
            parameter("points", Kind::Numbers(0), "0,0,1,1", "x and y of the points, x ascending"),
            parameter("interpolation", Kind::Choice(CurveShape::WORDS), "cubic", "shape between points"),
        ],
        boundary: None,
        functor: calls::curves,
        reference: color::curves,
    },
    Effect {
        name: "degrain",
        summary: "removal of film grain by wavelets",
        formula: "for each level l from 0, radius 2^l: high = (x − (x(−r) + x(r))/2)/2, low = x − high, along rows and then along columns \
                  of both; t = threshold·decay^l; each of the three high bands b becomes 0 where |b| ≤ t, else b − t²/b, or b − t·sign(b) \
                  with shrink=soft; their sum and the low band, which the next level replaces",
        inputs: IMAGE,
        parameters: &[
            parameter("levels", Kind::Integer(1, 12), "4", "levels of the wavelet transform"),
            parameter("threshold", Kind::Number(0.0, 1e30), "0.01", "threshold of the first level: half of the noise"),
            parameter("decay", Kind::Number(0.0, 1.0), "0.4", "factor from the threshold of a level to that of the next"),
            parameter("shrink", Kind::Choice(Threshold::WORDS), "garrote", "what the threshold removes of large values"),
        ],
        boundary: CLAMP,
        functor: |call| {
            let (threshold, decay) = (call.number("threshold"), call.number("decay"));
            let shrinkage = effects::Shrinkage { threshold, decay, kind: call.settings.chosen("shrink") };
            call.each(|x| effects::degrain(x, call.whole("levels"), shrinkage, call.boundary()))
        },
        reference: |call| {
            let (threshold, decay) = (call.number("threshold"), call.number("decay"));
            let shrinkage = grain::Shrinkage { threshold, decay, kind: call.settings.chosen("shrink") };
            call.each(|x, edge| grain::degrain(x, edge, call.integer("levels"), shrinkage))
        },
    },
    Effect {
        name: "demosaic",
        summary: "colours from the Bayer pattern of a sensor, by Malvar, He and Cutler",
        formula: "the missing two of r, g, b by the 5×5 linear filters of Malvar, He and Cutler (2004); the result has the planes R, G, B",
        inputs: IMAGE,
        parameters: &[PATTERN],
        boundary: MIRROR,
        functor: |call| call.sensor(|x| effects::demosaic(x, call.bayer(), call.boundary())),
        reference: raw::demosaic,
    },
    Effect {
        name: "diffusion",
        summary: "diffusion filter: soft light",
        formula: "d = mean along rows, columns, rows, columns with 2·radius + 1 taps; s = Σ w·d over offsets 4·(i, j), i² + j² ≤ 10, \
                  w = exp(−√(i²+j²)/1.5) / Σ w; (1 − mix)·x + mix·s",
        inputs: IMAGE,
        parameters: &[
            parameter("radius", Kind::Integer(0, 10000), "8", "radius of the means, in pixels"),
            parameter("mix", Kind::Number(0.0, 1.0), "0.5", "share of the filtered image"),
        ],
        boundary: CLAMP,
        functor: |call| call.each(|x| effects::diffusion(x, call.whole("radius"), call.number("mix"), call.boundary())),
        reference: |call| call.each(|x, edge| grain::diffusion(x, edge, call.integer("radius"), call.number("mix"))),
    },
    Effect {
        name: "dilate",
        summary: "greatest value of a square",
        formula: "max x(q) over the square of radius r; NaN only where all are",
        inputs: IMAGE,
        parameters: &[radius("1")],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::extreme(x, call.whole("radius"), Extreme::Greatest, call.boundary())),
        reference: |call| call.each(|x, edge| rank::dilate(x, edge, call.integer("radius"))),
    },
    Effect {
        name: "erode",
        summary: "least value of a square",
        formula: "min x(q) over the square of radius r; NaN only where all are",
        inputs: IMAGE,
        parameters: &[radius("1")],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::extreme(x, call.whole("radius"), Extreme::Least, call.boundary())),
        reference: |call| call.each(|x, edge| rank::erode(x, edge, call.integer("radius"))),
    },
    Effect {
        name: "flip",
        summary: "reflection",
        formula: "columns in reverse order with axis=horizontal, rows in reverse order with axis=vertical",
        inputs: IMAGE,
        parameters: &[parameter("axis", Kind::Choice(FlipAxis::WORDS), "horizontal", "axis along which pixels are reversed")],
        boundary: None,
        functor: calls::flip,
        reference: turn::flip,
    },
    Effect {
        name: "gaussian",
        summary: "Gaussian blur",
        formula: "Σ w·x(q) / Σ w along rows and columns, w = exp(−d² / 2·sigma²)",
        inputs: IMAGE,
        parameters: &[SIGMA],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::gaussian(x, call.wide("sigma"), call.boundary())),
        reference: |call| call.each(|x, edge| blur::gaussian(x, edge, call.number("sigma"))),
    },
    Effect {
        name: "grayscale",
        summary: "brightness of red, green and blue",
        formula: "weights · (r, g, b) as the plane Y instead of R, G and B; other planes stay",
        inputs: IMAGE,
        parameters: &[parameter("weights", Kind::Numbers(3), "0.2126,0.7152,0.0722", "weights of red, green and blue")],
        boundary: None,
        functor: calls::grayscale,
        reference: color::grayscale,
    },
    Effect {
        name: "harris",
        summary: "corner strength by Harris and Stephens",
        formula: "m = mean of all planes, gx, gy = Sobel gradients of m; a = Σ gx², b = Σ gy², c = Σ gx·gy over the square of radius r, \
                  the products outside of the image by the boundary rule; (a·b − c²) − k·(a + b)²",
        inputs: IMAGE,
        parameters: &[radius("2"), parameter("k", Kind::Number(0.0, 1.0), "0.04", "weight of the squared trace")],
        boundary: MIRROR,
        functor: |call| call.single(|x| effects::harris(x, call.whole("radius"), call.number("k"), call.boundary())),
        reference: edges::harris,
    },
    Effect {
        name: "key",
        summary: "chroma key: alpha from the distance to a colour",
        formula: "chroma c = (b − y, r − y)·(0.564, 0.713), y = 0.299·r + 0.587·g + 0.114·b; k = chroma of `color`; \
                  alpha = clamp((|c − k| − tolerance) / softness); c' = c − spill · max(0, c·k/|k|) · k/|k|; rgb of (y, c'); \
                  the plane A, 1 where there is none, times alpha; with `premultiply` the colours are multiplied by the new A, or by \
                  alpha where they were associated; without it they are divided by the old A where they were associated",
        inputs: IMAGE,
        parameters: &[
            parameter("color", Kind::Numbers(3), "0,1,0", "colour of the screen: red, green, blue"),
            parameter("tolerance", Kind::Number(0.0, 1e30), "0.2", "distance of chroma up to which alpha is 0"),
            parameter("softness", Kind::Number(1e-6, 1e30), "0.1", "distance of chroma from alpha 0 to alpha 1"),
            parameter("spill", Kind::Number(0.0, 1.0), "1", "share of the screen's chroma that is removed"),
            parameter("premultiply", Kind::Choice(Premultiply::WORDS), "yes", "whether the result has associated alpha"),
        ],
        boundary: None,
        functor: calls::key,
        reference: color::key,
    },
    Effect {
        name: "levels",
        summary: "range of values that is stretched",
        formula: "low + (high − low) · clamp((x − black) / (white − black))^(1/gamma); all planes but alpha",
        inputs: IMAGE,
        parameters: &[
            BLACK,
            WHITE,
            Parameter { default: Some("1"), ..GAMMA },
            Parameter { doc: "value that black becomes", ..LOW },
            Parameter { doc: "value that white becomes", ..HIGH },
        ],
        boundary: None,
        functor: calls::change_levels,
        reference: color::change_levels,
    },
    Effect {
        name: "local_laplacian",
        summary: "local Laplacian filter: contrast of details",
        formula: "Paris, Hasinoff and Kautz, with `levels` copies of the brightness y = 0.299·r + 0.587·g + 0.114·b, or the mean of \
                  fewer than three planes without alpha: for k = 0 … levels−1, l = k/(levels−1) and f = (y − l)·(levels−1), copy k is beta·(y − l) + l \
                  + alpha/(levels−1)·f·exp(−f²/2); pyramids of `pyramid` images; each is half of the one before, rounded up: (x(2i−1) + \
                  3·x(2i) + 3·x(2i+1) + x(2i+2))/8 along rows, then columns; doubled, 3/4 of x(⌊i/2⌋) + 1/4 of its neighbour nearer to \
                  i/2; differences to the next image, doubled; with g from the Gaussian pyramid of y, t = g·(levels−1) and k = ⌊t⌋ from \
                  0 to levels−2, (k+1−t) of copy k + (t−k) of copy k+1; y' = their sum from the smallest on, doubled; y'·(x + 0.01) / (y \
                  + 0.01); other planes stay",
        inputs: IMAGE,
        parameters: &[
            parameter("levels", Kind::Integer(2, 63), "8", "levels of brightness"),
            parameter("pyramid", Kind::Integer(1, 16), "8", "levels of the pyramids"),
            parameter("alpha", Kind::Number(-100.0, 100.0), "1", "gain of details"),
            parameter("beta", Kind::Number(0.0, 100.0), "1", "gain of edges"),
        ],
        boundary: CLAMP,
        functor: calls::local_laplacian,
        reference: laplacian::local,
    },
    Effect {
        name: "lut",
        summary: "look-up table of a .cube file, of one or three dimensions",
        formula: "rgb scaled from DOMAIN_MIN … DOMAIN_MAX to the table and clamped; interpolated trilinearly or in tetrahedra; other planes stay",
        inputs: IMAGE,
        parameters: &[
            Parameter { name: "file", kind: Kind::File, default: None, doc: "file of the table" },
            parameter("interpolation", Kind::Choice(Interpolation::WORDS), "trilinear", "interpolation in three dimensions"),
        ],
        boundary: None,
        functor: calls::lut,
        reference: color::lut,
    },
    Effect {
        name: "median",
        summary: "exact median of a square",
        formula: "middle of the sorted (2r+1)² values, in the total order of IEEE 754: −NaN, −∞, …, −0, 0, …, ∞, NaN",
        inputs: IMAGE,
        parameters: &[parameter("radius", Kind::Integer(0, 1000), "2", "radius of the square, in pixels")],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::median(x, call.whole("radius"), call.boundary())),
        reference: |call| call.each(|x, edge| rank::median(x, edge, call.integer("radius"))),
    },
    Effect {
        name: "nlmeans",
        summary: "non-local means",
        formula: "Σ w·x(q) / Σ w over the square with side `search`, w = exp(−d / strength²), \
                  d = mean squared difference of the squares with side `patch` around p and q",
        inputs: IMAGE,
        parameters: &[
            parameter("search", Kind::Odd(1, 255), "7", "side of the searched square, in pixels"),
            parameter("patch", Kind::Odd(1, 255), "3", "side of the compared squares, in pixels"),
            parameter("strength", Kind::Number(1e-6, 1e30), "0.1", "difference that counts as noise"),
        ],
        boundary: MIRROR,
        functor: |call| {
            let (search, patch) = (call.whole("search") / 2, call.whole("patch") / 2);
            call.each(|x| effects::nlmeans(x, search, patch, call.number("strength"), call.boundary()))
        },
        reference: |call| {
            let (search, patch) = (call.integer("search") / 2, call.integer("patch") / 2);
            call.each(|x, edge| smooth::nlmeans(x, edge, search, patch, call.number("strength")))
        },
    },
    Effect {
        name: "open",
        summary: "morphological opening",
        formula: "dilate(erode(x))",
        inputs: IMAGE,
        parameters: &[radius("1")],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::open(x, call.whole("radius"), call.boundary())),
        reference: |call| call.each(|x, edge| rank::open(x, edge, call.integer("radius"))),
    },
    Effect {
        name: "premultiply",
        summary: "colours with associated or straight alpha",
        formula: "colour · A from straight to associated alpha, colour / A where A is not 0 from associated to straight alpha; A is \
                  alpha of the layer; planes Z stay; alpha that is not known counts as straight",
        inputs: IMAGE,
        parameters: &[parameter("alpha", Kind::Choice(Alpha::WORDS), "associated", "relation of colours to alpha")],
        boundary: None,
        functor: calls::premultiply,
        reference: alpha::premultiply,
    },
    Effect {
        name: "resize",
        summary: "another size",
        formula: "Σ w·x(j) / Σ w along rows and columns, w = filter((j + 0.5 − (i + 0.5)·s) / max(s, 1)), s = old / new size, edges clamped; with filter=nearest x(⌊(i + 0.5)·s⌋)",
        inputs: IMAGE,
        parameters: &[
            parameter("width", Kind::Integer(0, 1 << 24), "0", "new width; 0 keeps the ratio of sides"),
            parameter("height", Kind::Integer(0, 1 << 24), "0", "new height; 0 keeps the ratio of sides"),
            parameter("percent", Kind::Number(0.0, 1e6), "0", "new size in percent of the old one; 0 is for width and height"),
            parameter(
                "filter",
                Kind::Choice(Filter::WORDS),
                "lanczos",
                "Lanczos with three lobes, cubic with a = −0.5, triangle, or the nearest pixel",
            ),
        ],
        boundary: None,
        functor: calls::resize,
        reference: resize::resize,
    },
    Effect {
        name: "rotate",
        summary: "rotation by a right angle",
        formula: "x(p) clockwise by `angle` degrees, without interpolation",
        inputs: IMAGE,
        parameters: &[parameter("angle", Kind::Choice(Angle::WORDS), "90", "angle in degrees, clockwise")],
        boundary: None,
        functor: calls::rotate,
        reference: turn::rotate,
    },
    Effect {
        name: "sobel",
        summary: "size of the gradient",
        formula: "√(gx² + gy²), gx by [1 2 1]ᵀ·[−1 0 1], gy by its transpose",
        inputs: IMAGE,
        parameters: &[],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::sobel(x, call.boundary())),
        reference: |call| call.each(edges::sobel),
    },
    Effect {
        name: "temporal_degrain",
        summary: "removal of grain over several frames, with motion search",
        formula: "for every other frame f and block of the current frame: offset d in the square of radius `search` with the least \
                  Σ |m(p) − m_f(p+d)| over the block, m = mean of all planes, first in the order of rows; \
                  (x + Σ w·x_f(p+d)) / (1 + Σ w), w = exp(−(x_f(p+d) − x)² / strength²); \
                  before the first frame and behind the last, these frames again",
        inputs: Inputs::Frames("frames"),
        parameters: &[
            parameter("frames", Kind::Integer(0, 16), "2", "frames before and behind the current one"),
            parameter("block", Kind::Integer(1, 256), "16", "side of a block, in pixels"),
            parameter("search", Kind::Integer(0, 64), "4", "largest motion along x and y, in pixels"),
            parameter("strength", Kind::Number(1e-6, 1e30), "0.05", "difference that counts as noise"),
        ],
        boundary: CLAMP,
        functor: calls::temporal_degrain,
        reference: grain::temporal,
    },
    Effect {
        name: "tone_map",
        summary: "compression of high values",
        formula: "e·x / (1 + e·x), e = 2^exposure; all planes but alpha",
        inputs: IMAGE,
        parameters: &[parameter("exposure", Kind::Number(-100.0, 100.0), "0", "exposure, in stops")],
        boundary: None,
        functor: |call| call.each_color(|x| effects::tone_map(x, call.number("exposure"))),
        reference: color::tone_map,
    },
    Effect {
        name: "unsharp",
        summary: "unsharp mask",
        formula: "x + amount · (x − gaussian(x))",
        inputs: IMAGE,
        parameters: &[SIGMA, parameter("amount", Kind::Number(-1e6, 1e6), "1", "strength")],
        boundary: MIRROR,
        functor: |call| call.each(|x| effects::unsharp(x, call.wide("sigma"), call.number("amount"), call.boundary())),
        reference: |call| call.each(|x, edge| blur::unsharp(x, edge, call.number("sigma"), call.number("amount"))),
    },
    Effect {
        name: "warp",
        summary: "displacement of pixels by a field",
        formula: "x(p + scale · d(p)), bilinear; d = the first two planes of the field, along x and y in pixels",
        inputs: Inputs::Images(&["image", "field"]),
        parameters: &[parameter("scale", Kind::Number(-1e6, 1e6), "1", "factor of the field")],
        boundary: MIRROR,
        functor: calls::warp,
        reference: warp::warp,
    },
];

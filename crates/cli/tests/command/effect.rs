//! Tests of effects on image files.

use crate::harness::{broadloom, empty_folder, root};
use std::path::{Path, PathBuf};

/// Writes a PFM with one plane.
fn pfm(path: &Path, width: usize, height: usize, value: impl Fn(usize, usize) -> f32) -> String {
    let mut bytes = format!("Pf\n{width} {height}\n-1.0\n").into_bytes();
    for y in (0..height).rev() {
        for x in 0..width {
            bytes.extend(value(x, y).to_le_bytes());
        }
    }
    std::fs::write(path, bytes).unwrap();
    path.display().to_string()
}

/// Reads the values of a PFM with one plane, the last row first.
fn values(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let header = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(2).unwrap().0 + 1;
    bytes[header..].chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn in_folder(folder: &Path) -> impl Fn(&str) -> String {
    let folder: PathBuf = folder.to_owned();
    move |name| folder.join(name).display().to_string()
}

#[test]
fn effects_are_listed_and_explained() {
    let list = broadloom(&["effect", "list"]).exits(0).says(&["gaussian ", "Gaussian blur", "temporal_degrain", "sigma=2"]);
    assert_eq!(list.err, "");
    let json = broadloom(&["effect", "list", "--json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let effects = json["effects"].as_array().unwrap();
    assert_eq!(effects.len(), 36);
    let resize = effects.iter().find(|effect| effect["name"] == "resize").unwrap();
    let filter = resize["parameters"].as_array().unwrap().iter().find(|parameter| parameter["name"] == "filter").unwrap();
    assert_eq!((filter["default"].as_str(), filter["values"][1].as_str()), (Some("lanczos"), Some("bicubic")));
    broadloom(&["effect", "help", "bilateral"]).exits(0).says(&[
        "sigma_range=0.1",
        "boundary=mirror",
        "an integer from 0 to 1000",
    ]);
    broadloom(&["effect", "help", "bilatral"]).exits(2).complains(&["did you mean `bilateral`?"]);
    broadloom(&["effect", "help"]).exits(2).complains(&["takes the name of one effect"]);
}

#[test]
fn an_effect_and_a_chain_run_by_reference_and_on_the_device() {
    let folder = empty_folder("effect-runs");
    let at = in_folder(&folder);
    let input = pfm(&folder.join("in.pfm"), 13, 9, |x, y| ((x * 7 + y * 3) % 11) as f32);
    for chain in ["box", "box,tone_map"] {
        let mut results = vec![];
        for (way, out) in [(&["--reference"][..], "a.pfm"), (&["--device", "cpu"], "b.pfm")] {
            let mut call = vec!["effect", chain, &input];
            let out = at(out);
            call.extend([out.as_str(), "--set", "radius=1", "--stats"]);
            call.extend(way);
            broadloom(&call).exits(0).complains(&["1 frame", "read", "box", "write"]);
            results.push(values(Path::new(&out)));
        }
        assert_eq!(results[0].len(), 13 * 9);
        let far = results[0].iter().zip(&results[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1e-5, "{chain}: the device is off by {far}");
    }
    assert_eq!(names(&folder), ["a.pfm", "b.pfm", "in.pfm"]);
}

#[test]
fn tiles_plans_and_times_are_told() {
    let folder = empty_folder("effect-tiles");
    let at = in_folder(&folder);
    let input = pfm(&folder.join("in.pfm"), 40, 60, |x, y| ((x * 7 + y * 3) % 11) as f32);
    let call = |out: &str, more: &[&str]| {
        let out = at(out);
        let call = ["effect", "box,sobel", &input, &out, "--set", "radius=1", "--device", "interp"];
        broadloom(&[&call[..], more].concat())
    };
    call("a.pfm", &["--explain"]).exits(0).says(&["sobel: 8 reads at known offsets", "stage 0: "]);
    call("b.pfm", &["--memory", "10K", "--without", "fuse"]).exits(0);
    assert_eq!(values(&folder.join("a.pfm")), values(&folder.join("b.pfm")));
    call("c.pfm", &["--stats"]).exits(0).complains(&["sobel", "ms"]);
    let compared = call("c.pfm", &["--compare"]).exits(0);
    compared.complains(&["sobel", "without fuse", "×", "the kernels are the same without ", "order"]);
    call("d.pfm", &["--memory", "100"]).exits(3).complains(&["bytes of memory, and 100 may be used"]);
    call("d.pfm", &["--memory", "many"]).exits(2).complains(&["`many` is not a number of bytes, such as 512M"]);
    call("d.pfm", &["--without", "magic"]).exits(2).complains(&["the techniques are fuse"]);
    assert_eq!(names(&folder), ["a.pfm", "b.pfm", "c.pfm", "in.pfm"]);
}

#[test]
fn the_display_window_stays_where_the_size_does() {
    use broadloom::effect::{Image, Rect, file};
    let folder = empty_folder("effect-display");
    let at = in_folder(&folder);
    let display = Rect::new(-4, -2, 20, 16);
    let image = Image::filled(Rect::new(1, 2, 8, 6), &["R", "G", "B"], 0.5f32).unwrap().with_display(display).unwrap();
    file::write(at("in.exr"), &image).unwrap();
    for device in [&["--reference"][..], &["--device", "interp"]] {
        broadloom(&[&["effect", "box,tone_map", &at("in.exr"), &at("out.exr"), "--set", "radius=1"], device].concat()).exits(0);
        let result = file::read(at("out.exr")).unwrap();
        assert_eq!((result.bounds(), result.display()), (image.bounds(), display));
        broadloom(&[&["effect", "resize", &at("in.exr"), &at("out.exr"), "--set", "width=4"], device].concat()).exits(0);
        let result = file::read(at("out.exr")).unwrap();
        assert_eq!((result.width(), result.display()), (4, result.bounds()));
    }
}

#[test]
fn a_region_is_computed_alone() {
    use broadloom::effect::{Image, Rect, file};
    let folder = empty_folder("effect-region");
    let at = in_folder(&folder);
    let samples: Vec<f32> = (0..12 * 9).map(|i| (i * 7 % 11) as f32).collect();
    let image = Image::from_f32(12, 9, [("Y", samples)]).unwrap().with_origin(-2, 3).unwrap();
    let image = image.with_display(Rect::new(-4, 0, 20, 20)).unwrap();
    file::write(at("in.exr"), &image).unwrap();
    for device in [&["--reference"][..], &["--device", "interp"]] {
        let call = |out: &str, more: &[&str]| broadloom(&[&["effect", "box", &at("in.exr"), &at(out)], device, more].concat());
        call("all.exr", &[]).exits(0);
        call("part.exr", &["--region", "-1,4,5,2"]).exits(0);
        let (all, part) = (file::read(at("all.exr")).unwrap(), file::read(at("part.exr")).unwrap());
        let region = Rect::new(-1, 4, 5, 2);
        assert_eq!((part.bounds(), part.display()), (region, region));
        assert_eq!(part.planes()[0].to_f32(), all.view(region).unwrap().planes()[0].to_f32());
        // The displayed rectangle of the whole image is also its region.
        call("part.exr", &["--region", "-2,3,12,9"]).exits(0);
        assert_eq!(file::read(at("part.exr")).unwrap().display(), Rect::new(-2, 3, 12, 9));
        call("none.exr", &["--region", "8,3,5,2"]).exits(2).complains(&["region"]);
        call("none.exr", &["--region", "1,2,3"]).exits(2).complains(&["`1,2,3` is not X,Y,WIDTH,HEIGHT"]);
        call("none.exr", &["--region", "0,0,0,5"]).exits(2).complains(&["is not X,Y,WIDTH,HEIGHT"]);
    }
    assert_eq!(names(&folder), ["all.exr", "in.exr", "part.exr"]);
}

#[test]
fn sequences_run_frame_by_frame() {
    let folder = empty_folder("effect-frames");
    let at = in_folder(&folder);
    for frame in [1, 2, 3, 5] {
        pfm(&folder.join(format!("in.{frame:04}.pfm")), 2, 2, |_, _| frame as f32);
    }
    let call = ["effect", "curves", &at("in.%04d.pfm"), &at("out.%02d.pfm"), "--set", "points=0,0,1,10", "--reference"];
    broadloom(&call).exits(0).complains(&["frame 4 is missing; the others are processed"]);
    for frame in [1, 2, 3, 5] {
        assert_eq!(values(&folder.join(format!("out.{frame:02}.pfm"))), [10.0 * frame as f32; 4]);
    }
    // A mean over three frames that differ much less than the strength. The ends of the sequence repeat. A
    // range selects the frames that are computed. Their neighbours are those of the whole sequence.
    let call = ["effect", "temporal_degrain", &at("in.%04d.pfm"), &at("t.%d.pfm"), "--set", "frames=1", "--set", "strength=1e9"];
    broadloom(&[&call[..], &["--reference", "--frames", "1-3", "--stats"]].concat()).exits(0).complains(&["3 frames"]);
    let means: Vec<f32> = (1..=3).map(|frame| values(&folder.join(format!("t.{frame}.pfm")))[0]).collect();
    assert_eq!(means, [4.0 / 3.0, 2.0, 10.0 / 3.0]);
    for frame in 1..=3 {
        let (path, range) = (folder.join(format!("t.{frame}.pfm")), format!("{frame}-{frame}"));
        let whole = values(&path);
        broadloom(&[&call[..], &["--reference", "--frames", &range]].concat()).exits(0);
        assert_eq!(values(&path), whole, "frame {frame} alone");
    }
    // A missing frame of a range is reported before the other frames are computed.
    let missing = ["frame 4 is missing: there is no file", "in.0004.pfm"];
    broadloom(&["effect", "box", &at("in.%04d.pfm"), &at("x.%d.pfm"), "--reference", "--frames", "3-4"])
        .exits(2)
        .complains(&missing);
    broadloom(&["effect", "box", &at("in.%04d.pfm"), &at("x.%d.pfm"), "--reference", "--frames", "6-7"])
        .exits(2)
        .complains(&["frame 6 is missing"]);
    // An error names the frame.
    pfm(&folder.join("in.0005.pfm"), 3, 2, |_, _| 5.0);
    broadloom(&[&call[..], &["--reference", "--frames", "5"]].concat()).exits(2).complains(&[
        "must cover the same pixels",
        "while computing",
        "t.5.pfm",
    ]);
    broadloom(&["effect", "box", &at("no.%d.pfm"), &at("x.%d.pfm"), "--reference"]).exits(2).complains(&["there is no frame"]);
    broadloom(&["effect", "box", &at("in.%04d.pfm"), &at("x.pfm"), "--reference"])
        .exits(2)
        .complains(&["the result is a sequence too"]);
    assert!(names(&folder).iter().all(|name| !name.ends_with(".part") && !name.starts_with("x.")));
}

#[test]
fn mistakes_are_told_and_nothing_is_written() {
    let folder = empty_folder("effect-mistakes");
    let at = in_folder(&folder);
    let input = pfm(&folder.join("in.pfm"), 3, 2, |x, _| x as f32);
    std::fs::write(folder.join("broken.png"), b"\x89PNG\r\n\x1a\n\0\0").unwrap();
    let out = at("out.png");
    // A result that cannot be written is reported before anything is read or computed.
    let cases: [(&[&str], i32, &str); 17] = [
        (&["box", &at("none.png"), &at("none/out.png")], 3, "cannot be written: there is no folder"),
        (&["box", &at("none.png"), &at("in.pfm/out.png")], 3, "out.png: cannot be written: "),
        (&["box", &at("none.png"), &at("out.pfm"), "--depth", "8"], 2, "out.pfm: "),
        (&["gausian", &input, &out], 2, "did you mean `gaussian`?"),
        (&["blur", &input, &out], 2, "there is no effect `blur`; did you mean `gaussian`?"),
        (&["canny", "low=100", &input, &out], 2, "`low=100` is a setting, not a file"),
        (&["gaussian", &input, &out, "--set", "sgma=1"], 2, "did you mean `sigma`?"),
        (&["gaussian", &input, &out, "--set", "sigma=x"], 2, "it takes a number from 0 to 10000"),
        (&["gaussian", &input], 2, "takes 2 files: image, and the result; there are 1"),
        (&["warp", &input, &out], 2, "takes 3 files: image, field, and the result; there are 2"),
        (&["box,temporal_degrain", &input, &out], 2, "must be the first of a chain"),
        (&["box", &at("none.png"), &out], 2, "none.png: cannot be read"),
        (&["box", &at("broken.png"), &out], 2, "broken.png: broken PNG at byte"),
        (&["box", &input, &at("out.gif")], 2, "the format is not known by the name"),
        (&["box", &input, &at("none/out.png")], 3, "out.png: cannot be written"),
        (&["color_matrix", &input, &out], 2, "it needs red, green and blue"),
        (&["warp", "-", "-", &out], 2, "standard input holds one image"),
    ];
    // What a person types first is answered by what to type.
    broadloom(&["effect", "gaussian", &input, &out, "--sigma", "3"]).exits(2).complains(&["help: write --set sigma=3"]);
    broadloom(&["effect", "canny", &input, &out, "--low=100"]).exits(2).complains(&["help: write --set low=100"]);
    for (call, code, text) in cases {
        broadloom(&[&["effect"], call, &["--reference"]].concat()).exits(code).complains(&[text]);
    }
    broadloom(&["effect", "box", &input, "-", "--explain", "--device", "cpu"])
        .exits(2)
        .complains(&["standard output cannot take the image and the text"]);
    broadloom(&["effect", "box", &input, &out, "--device", "none"]).exits(3).complains(&["no device `none`"]);
    assert_eq!(names(&folder), ["broken.png", "in.pfm"]);
}

#[test]
fn samples_keep_their_type_unless_asked() {
    let folder = empty_folder("effect-samples");
    let at = in_folder(&folder);
    let input = pfm(&folder.join("in.pfm"), 4, 3, |x, y| (x + y) as f32 / 8.0);
    let convert = |from: &str, to: &str, more: &[&str]| {
        broadloom(&[&["effect", "box", from, to, "--set", "radius=0", "--reference"], more].concat()).exits(0);
        std::fs::read(to).unwrap()
    };
    // The depth of a PNG is its 25th byte.
    assert_eq!(convert(&input, &at("a.png"), &[])[24], 16);
    assert_eq!(convert(&input, &at("b.png"), &["--depth", "8"])[24], 8);
    assert_eq!(convert(&at("b.png"), &at("c.png"), &["--linear"])[24], 8);
    convert(&at("b.png"), &at("d.png"), &[]);
    convert(&at("a.png"), &at("e.exr"), &[]);
    convert(&at("e.exr"), &at("f.pfm"), &["--planes", "Y"]);
    let close = values(&folder.join("f.pfm")).iter().zip(values(&folder.join("in.pfm"))).all(|(a, b)| (a - b).abs() < 1e-4);
    assert!(close, "values changed on their way through files");
    broadloom(&["effect", "box", &input, &at("g.exr"), "--depth", "8", "--reference"])
        .exits(2)
        .complains(&["EXR has no samples of u8"]);
    broadloom(&["effect", "box", &input, &at("g.exr"), "--planes", "Q", "--reference"])
        .exits(2)
        .complains(&["there is no plane `Q`"]);
}

/// `-` is standard input or output, and `--format` and `--compression` choose the file.
#[test]
fn images_come_from_standard_input_and_go_to_standard_output() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let folder = empty_folder("effect-streams");
    let input = pfm(&folder.join("in.pfm"), 6, 5, |x, y| (x * y) as f32 / 20.0);
    let formats: [(&[&str], &[u8]); 4] = [
        (&[], b"\x89PNG"),
        (&["--format", "jpg", "--quality", "50"], b"\xff\xd8"),
        (&["--format", "webp"], b"RIFF"),
        (&["--format", "tif", "--compression", "best"], b"II*\0"),
    ];
    for (more, magic) in formats {
        let mut command = Command::new(env!("CARGO_BIN_EXE_broadloom"));
        command.args(["effect", "box", "-", "-", "--set", "radius=0", "--reference"]).args(more);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&std::fs::read(&input).unwrap()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success() && output.stdout.starts_with(magic),
            "{more:?}: {:?}",
            &output.stdout[..4.min(output.stdout.len())]
        );
    }
}

/// `--keep-going` skips frames that cannot be read, and the command ends with 1. `--to` converts colours.
#[test]
fn broken_frames_are_skipped_if_asked() {
    let folder = empty_folder("effect-keep-going");
    let at = in_folder(&folder);
    for frame in 1..=4 {
        pfm(&folder.join(format!("in.{frame}.pfm")), 4, 3, |x, _| x as f32 / 4.0);
    }
    std::fs::write(folder.join("in.2.pfm"), "Pf\n4 3\n-1.0\n").unwrap();
    let call = ["effect", "box", &at("in.%d.pfm"), &at("out.%d.png"), "--reference"];
    broadloom(&call).exits(2).complains(&["in.2.pfm: broken PFM"]);
    let keep = [&call[..], &["--keep-going", "--to", "p3"]].concat();
    broadloom(&keep).exits(1).complains(&["skipped", "in.2.pfm: broken PFM", "1 of 4 frames were skipped"]);
    let written = |frame: u32| folder.join(format!("out.{frame}.png")).exists();
    assert_eq!([1, 2, 3, 4].map(written), [true, false, true, true]);
    let png = std::fs::read(at("out.1.png")).unwrap();
    assert!(png.windows(4).any(|chunk| chunk == b"cICP"));
    // A neighbour that cannot be read skips the frames around it.
    let call =
        ["effect", "temporal_degrain", &at("in.%d.pfm"), &at("t.%d.pfm"), "--set", "frames=1", "--reference", "--keep-going"];
    broadloom(&call).exits(1).complains(&["3 of 4 frames were skipped"]);
}

/// The pictures of the documents are what the effects give, up to the rounding of a sample. `BLESS=1` rewrites
/// them.
#[test]
fn pictures_of_documents_are_results() {
    let folder = empty_folder("effect-pictures");
    let at = in_folder(&folder);
    let input = "examples/effects/grainy.png";
    for (effect, setting) in [("degrain", "threshold=0.025"), ("nlmeans", "strength=0.2"), ("diffusion", "mix=0.5")] {
        let (made, shown) = (at("made.png"), root().join(format!("docs/pictures/{effect}.png")));
        broadloom(&["effect", effect, input, &made, "--set", setting, "--device", "cpu"]).exits(0);
        if std::env::var_os("BLESS").is_some_and(|value| value != "0") {
            std::fs::copy(&made, &shown).unwrap();
        }
        let as_values = |picture: &str| {
            let out = at("values.pfm");
            broadloom(&["effect", "color_matrix", picture, &out, "--device", "cpu"]).exits(0);
            values(Path::new(&out))
        };
        let (made, expected) = (as_values(&made), as_values(&shown.display().to_string()));
        assert_eq!((made.len(), expected.len()), (240 * 160 * 3, 240 * 160 * 3));
        let far = made.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1.5 / 255.0, "{}: BLESS=1 rewrites it ({far})", shown.display());
    }
}

/// Bands with rows around them give the file that the whole image gives, in whichever order and how often they are read.
#[test]
fn bands_of_rows_are_those_of_the_whole_image() {
    let folder = empty_folder("effect-bands");
    let at = in_folder(&folder);
    let input = root().join("examples/effects/grainy.png").display().to_string();
    let small = at("small.tif");
    broadloom(&["effect", "crop", &input, &small, "--set", "x=40", "--set", "y=20", "--set", "width=67", "--set", "height=101"])
        .exits(0);
    let cases: &[&[&str]] = &[
        &["resize,gaussian", "--set", "width=31"],
        &["resize", "--set", "height=400", "--set", "filter=bicubic", "--region", "3,50,90,200"],
        &["gaussian,degrain,median", "--planes", "R,B", "--to", "p3"],
        &["composite,channels", "--set", "planes=G,R,B,A=1", "--depth", "16"],
        &["gaussian", "--region", "5,31,40,60", "--linear"],
        &["erode", "--set", "boundary=wrap"],
        &["clahe,canny"],
        &["gaussian,clahe,unsharp", "--set", "tiles=3"],
        &["clahe", "--set", "boundary=wrap", "--set", "tiles=7"],
        &["canny", "--set", "canny.low=0.1", "--set", "canny.high=0.3", "--region", "3,20,50,70"],
        &["crop,gaussian", "--set", "x=5", "--set", "y=31", "--set", "width=50", "--set", "height=40"],
        &["flip", "--set", "axis=vertical"],
        &["rotate,clahe", "--set", "angle=270", "--set", "boundary=constant", "--set", "tiles=13"],
        &["rotate,crop", "--set", "angle=180", "--set", "x=9", "--set", "y=7", "--set", "width=40", "--set", "height=55"],
    ];
    for case in cases {
        let files: &[&str] = if case[0].starts_with("composite") { &[&small, &small] } else { &[&small] };
        let results = ["0", "7"].map(|rows| {
            let out = at(&format!("{rows}.tif"));
            let words = [&["effect", case[0]], files, &[&out], &case[1..], &["--rows", rows, "--device", "cpu"]].concat();
            broadloom(&words).exits(0);
            std::fs::read(out).unwrap()
        });
        assert!(results[0] == results[1], "{case:?}");
    }
    // A file that is broken behind the rows that are needed is an error, and leaves no result.
    let bytes = std::fs::read(&input).unwrap();
    let broken = at("broken.png");
    std::fs::write(&broken, &bytes[..bytes.len() - 200]).unwrap();
    broadloom(&["effect", "gaussian", &broken, &at("out.png"), "--region", "0,0,50,20", "--rows", "8"])
        .exits(2)
        .complains(&["broken PNG"]);
    assert!(!folder.join("out.png").exists());
}

/// A time limit that ends the process leaves no incomplete file.
#[test]
fn a_time_limit_leaves_no_incomplete_file() {
    let folder = empty_folder("effect-time-limit");
    let input = root().join("examples/effects/grainy.png").display().to_string();
    let out = in_folder(&folder)("out.png");
    let slow = ["--set", "search=255", "--set", "patch=65", "--rows", "16", "--device", "cpu", "--time-limit", "0.4"];
    broadloom(&[&["effect", "nlmeans", &input, &out][..], &slow].concat()).exits(1).complains(&["did not end within 400ms"]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

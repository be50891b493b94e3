//! Tests of the catalogue: names, defaults, settings, chains.

use broadloom_effect::catalogue::{EFFECTS, Effect, Settings, chain};

#[test]
fn names_are_unique_and_defaults_are_values() {
    assert!(EFFECTS.is_sorted_by(|a, b| a.name < b.name));
    for effect in EFFECTS {
        let names: Vec<&str> = effect.all_parameters().map(|parameter| parameter.name).collect();
        for parameter in effect.all_parameters() {
            assert_eq!(names.iter().filter(|name| **name == parameter.name).count(), 1, "{}", effect.name);
            if let Some(default) = parameter.default {
                let value =
                    parameter.kind.parse(default).unwrap_or_else(|why| panic!("{}.{}: {why}", effect.name, parameter.name));
                assert_eq!(value.to_string(), default, "{}.{}", effect.name, parameter.name);
            }
        }
    }
    let wanted = "gaussian box median erode dilate open close sobel unsharp bilateral nlmeans resize color_matrix tone_map harris degrain \
                  diffusion temporal_degrain bilateral_grid local_laplacian demosaic camera curves lut warp key clahe canny \
                  channels composite crop flip grayscale levels premultiply rotate";
    assert_eq!(wanted.split_whitespace().count(), EFFECTS.len());
    for name in wanted.split_whitespace() {
        assert!(Effect::find(name).is_ok(), "{name}");
    }
}

#[test]
fn the_guide_names_every_effect_and_parameter() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/EFFECTS.md");
    let guide = std::fs::read_to_string(path).unwrap();
    for effect in EFFECTS {
        let heading = format!("### `{}`", effect.name);
        let section = guide.split_once(&heading).unwrap_or_else(|| panic!("the guide has no {heading}")).1;
        let section = section.split("\n### ").next().unwrap();
        let words = section.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(words.contains(&format!("Result: {}.", effect.formula)), "{}: the formula is another", effect.name);
        for parameter in effect.all_parameters().filter(|parameter| parameter.name != "border") {
            let row = format!("| `{}` | {} |", parameter.name, parameter.default.unwrap_or("–"));
            assert!(section.contains(&row), "{}: {row}", effect.name);
        }
    }
}

fn error(names: &str, settings: &[&str]) -> String {
    chain(names, settings).unwrap_err().to_string()
}

#[test]
fn mistakes_suggest_the_nearest_name() {
    assert_eq!(error("gausian", &[]), "there is no effect `gausian`; did you mean `gaussian`?");
    assert_eq!(error("quark", &[]), "there is no effect `quark`");
    for (word, effect) in
        [("blur", "gaussian"), ("sharpen", "unsharp"), ("denoise", "degrain"), ("mirror", "flip"), ("scale", "resize")]
    {
        assert_eq!(error(word, &[]), format!("there is no effect `{word}`; did you mean `{effect}`?"));
        assert!(Effect::find(effect).is_ok());
    }
    assert_eq!(error("", &[]), "there is no effect ``");
    assert_eq!(
        error("unsharp", &["ammount=2"]),
        "`unsharp` has no parameter `ammount`: it has sigma, amount, boundary, border; did you mean `amount`?"
    );
    assert_eq!(error("box", &["radius=-1"]), "`box` cannot have radius=-1: it takes an integer from 0 to 10000");
    assert_eq!(error("box", &["radius=2.5"]), "`box` cannot have radius=2.5: it takes an integer from 0 to 10000");
    assert_eq!(error("gaussian", &["sigma=nan"]), "`gaussian` cannot have sigma=nan: it takes a number from 0 to 10000");
    assert_eq!(error("nlmeans", &["patch=4"]), "`nlmeans` cannot have patch=4: it takes an odd integer from 1 to 255");
    assert_eq!(error("box", &["boundary=odd"]), "`box` cannot have boundary=odd: it takes one of clamp, mirror, wrap, constant");
    assert_eq!(
        error("color_matrix", &["matrix=1,2"]),
        "`color_matrix` cannot have matrix=1,2: it takes 9 numbers from -1e30 to 1e30, with commas between them"
    );
    assert!(
        error("key", &["color=0,1e300,0"])
            .starts_with("`key` cannot have color=0,1e300,0: it takes 3 numbers from -1e30 to 1e30")
    );
    assert!(error("camera", &["gamma=0"]).ends_with("it takes a number from 0.01 to 100"));
    assert!(error("bilateral", &["sigma_range=0"]).ends_with("it takes a number from 1e-6 to 1e30"));
    assert_eq!(error("box", &["radius"]), "`radius` is no setting: write name=value");
    assert_eq!(error("lut", &[]), "`lut` needs a value for `file`: file of the table");
    assert!(chain("tone_map", &["boundary=wrap", "border=1"]).is_ok());
    assert!(chain("tone_map,curves", &["boundary=wrap"]).is_ok());
    assert!(error("tone_map", &["boundary=wrapped"]).starts_with("`tone_map` cannot have boundary=wrapped"));
    assert_eq!(error("tone_map", &["radius=1"]), "`tone_map` has no parameter `radius`: it has exposure");
}

#[test]
fn settings_of_chains_find_their_effect() {
    let steps = chain("box, gaussian,box", &["1.radius=7", "sigma=1", "boundary=wrap"]).unwrap();
    assert_eq!((steps[0].integer("radius"), steps[2].integer("radius")), (7, 3));
    assert!(steps.iter().all(|step| step.choice("boundary") == "wrap"));
    assert_eq!(error("box,median", &["radius=1"]), "box and median have a parameter `radius`: write `box.radius=…`");
    assert_eq!(error("box,box", &["box.radius=1"]), "1 and 2 have a parameter `radius`: write `1.radius=…`");
    assert_eq!(
        error("box,median", &["medial.radius=1"]),
        "`medial` is no effect of this chain: it has 1 box, 2 median; did you mean `median`?"
    );
    assert_eq!(error("box", &["2.radius=1"]), "`2` is no effect of this chain: it has 1 box");
    assert!(error("box,sobel", &["sigma=1"]).starts_with("`box,sobel` has no parameter `sigma`"));
    assert!(error("box,", &[]).starts_with("there is no effect ``"));
}

#[test]
fn settings_show_their_values() {
    let mut settings = Settings::new(Effect::find("curves").unwrap());
    settings.set("points", " 0,0, 0.5,0.25,1,1").unwrap();
    let shown: Vec<String> =
        settings.values().map(|(parameter, value)| format!("{}={}", parameter.name, value.unwrap())).collect();
    assert_eq!(shown, ["points=0,0,0.5,0.25,1,1", "interpolation=cubic"]);
}
